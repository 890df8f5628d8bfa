"""The ops that TensorFlow has no deterministic version of, made of ops that are deterministic.

Each is put below the public API, at the generated function of the op (`gen_math_ops.unsorted_segment_sum`), so that
the checks, formats and names above it stay TensorFlow's own.
"""

import collections

from tfdeterminism.patches import bias, resize, segments
from tfdeterminism.replace import Replacements  # noqa: F401 (part of this package's interface)


class Patch(collections.namedtuple("Patch", "key sources since before install note on_ngc")):
    """One family of ops.

    sources: the matrix's sources that it serves.  since, before: the TensorFlow versions that need it; later ones have
    a deterministic version of their own (before=None: none has).  on_ngc: whether NVIDIA's builds need it too.
    install(session): replace the ops; note: what the user should know.
    """

    def applies(self, version, is_ngc=False):
        """Whether this TensorFlow (version as a tuple of ints) needs the patch."""
        if is_ngc and not self.on_ngc:
            return False
        return version >= self.since and (self.before is None or version < self.before)


def _patch(key, sources, install, note, since=(1, 13), before=None, on_ngc=True):
    return key, Patch(key, tuple(sources), since, before, install, note, on_ngc)


PATCHES = collections.OrderedDict([
    _patch("bias-add", ["bias-add-backprop"], bias.install, before=(2, 1), on_ngc=False,
           note="the gradient is a plain sum; bias_add itself is TensorFlow's"),
    _patch("segment", ["segment-sum", "segment-prod"], segments.install_sorted, before=(2, 7),
           note="sums and products of floating-point and complex numbers; those of integers have no order"),
    _patch("unsorted-segment",
           ["unsorted-segment-sum", "unsorted-segment-mean", "unsorted-segment-sqrt-n", "unsorted-segment-prod",
            "gather-backprop", "convert-to-tensor-indexed-slices", "dense-image-warp-backprop"],
           segments.install_unsorted, before=(2, 7),
           note="with it the gradients of gather and of embeddings, and IndexedSlices made dense"),
    _patch("resize-bilinear", ["resize-bilinear-backprop"], resize.install_bilinear, before=(2, 4),
           note="the gradient; slower than the original by about the logarithm of the scale"),
    _patch("resize-nearest", ["resize-nearest-backprop"], resize.install_nearest,
           note="the gradient; slower than the original by about the logarithm of the scale"),
])
