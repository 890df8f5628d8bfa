"""The calls that math_checks.py compares: every replaced op in its dtypes, layouts, shapes and odd inputs."""

from cases_images_checks import contrasts, crops, resizes
from cases_layers_checks import bias, depthwise, losses, norms
from cases_scatters_checks import scatters, variables
from cases_sums_checks import gathers, histograms, products, segments, unsorted_segments
from making_checks import Maker


def cases(tf, tf1, case, version):
    """Yield every case, built by the functions of cases_*_checks.py; case: the class math_checks.Case."""
    groups = (bias, segments, unsorted_segments, gathers, resizes, crops, losses, norms, scatters, variables,
              histograms, products, depthwise, contrasts)
    for group in groups:
        for built in group(tf, tf1, Maker(case), version):
            yield built
