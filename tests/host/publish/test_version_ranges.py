"""Version ranges in the tables contain exactly the environments that they stand for."""

from __future__ import annotations

import random
import re

import pytest

from tfdet.base.paths import Project
from tfdet.matrix.load import Matrix, load_matrix
from tfdet.matrix.models import Environment
from tfdet.publish.tables import version_ranges

# A part of a range: "TF 2.1 to 2.4", "TF with horovod 2.1" (environments with this additional package), "NGC TF2
# 22.03" (of a month with two TensorFlows), or "TF 2.0.4" (one framework_version; others of its minor version are not
# in the range).
SPAN = re.compile(
    r"(?P<line>TF|NGC)(?: with (?P<added_package>\w+))?(?: TF(?P<major>\w+))? (?P<first>\S+)(?: to (?P<last>\S+))?"
)


@pytest.fixture(scope="module")
def matrix(checkout: Project) -> Matrix:
    """Return the matrix of TensorFlow, whose tables the project publishes in its README."""
    return load_matrix(checkout.matrix).for_published_framework


def read_range(text: str, among: list[Environment]) -> list[Environment]:
    """Return the environments that a reader takes a range to contain."""
    environments: list[Environment] = []
    for part in filter(None, text.split(", ")):
        words = SPAN.fullmatch(part)
        assert words, part
        line = [e for e in among if (e.line == "stock", e.package) == (words["line"] == "TF", words["added_package"])]
        line = [e for e in line if words["major"] in (None, e.framework_version.split(".")[0])]
        versions = list(dict.fromkeys(e.version for e in line))
        if words["first"] in versions:
            first, last = versions.index(words["first"]), versions.index(words["last"] or words["first"])
            environments += [e for e in line if e.version in versions[first : last + 1]]
        else:
            environments += [
                e for e in line if words["first"] == e.framework_version or e.image.endswith(f":{words['first']}")
            ]
    return environments


def test_a_measured_version_is_outside_of_the_range_of_unmeasured_ones(matrix: Matrix) -> None:
    old = [matrix.environments[key] for key in ("tf1.14", "tf1.15", "tf1.15.5", "tf2.0", "tf2.0.4")]
    measured = old[3:4]
    assert version_ranges(measured, old, matrix.frameworks) == "TF 2.0.0"
    assert version_ranges([e for e in old if e not in measured], old, matrix.frameworks) == "TF 1.14 to 1.15, TF 2.0.4"


def test_images_of_one_month_with_two_tensorflows_are_distinguished(matrix: Matrix) -> None:
    images = [matrix.environments[f"ngc{month}-tf{major}"] for month in ("22.03", "22.04") for major in (1, 2)]
    assert version_ranges(images, images, matrix.frameworks) == "NGC 22.03 to 22.04"
    assert version_ranges(images[1::2], images, matrix.frameworks) == "NGC TF2 22.03 to 22.04"


@pytest.mark.parametrize("seed", range(40))
def test_a_range_stands_for_the_environments_it_was_made_of(matrix: Matrix, seed: int) -> None:
    """Environments are grouped by version; some differ from others of their version."""
    rng = random.Random(seed)
    among = rng.sample(list(matrix.environments.values()), rng.randint(1, len(matrix.environments)))
    among = [e for e in matrix.environments.values() if e in among]
    by_version = {(e.line, e.version): rng.random() < 0.6 for e in among}
    chosen = [e for e in among if by_version[e.line, e.version] != (rng.random() < 0.1)]
    assert sorted(map(str, read_range(version_ranges(chosen, among, matrix.frameworks), among))) == sorted(
        map(str, chosen)
    )
