"""Deterministic replacements for nondeterministic ops, composed of deterministic ops.

A patch replaces the generated function of an op (`gen_math_ops.unsorted_segment_sum`), below the public API, whose
checks, formats and names stay TensorFlow's own.
"""

import collections

from tfdeterminism.patches import (
    batch_norm,
    bias,
    contrast,
    crop,
    depthwise,
    histogram,
    losses,
    resize,
    scatter,
    segments,
    sparse,
    variables,
)
from tfdeterminism.replace import Replacements  # noqa: F401 (part of this package's interface)


class Patch(collections.namedtuple("Patch", "key sources since before install note on_ngc")):
    """The replacements of one family of ops.

    Attributes:
        key: its name.
        sources: the sources of nondeterminism (files of matrix/sources) that it makes deterministic.
        since, before: the TensorFlow versions that need it, the second excluded: later versions have a deterministic
            op of their own.  before=None: no version has.
        install: a function that calls Replacements.replace for each op.
        note: what the user should know.
        on_ngc: whether NVIDIA's builds need it, too.
    """

    def applies(self, version, is_ngc=False):
        """Return whether a TensorFlow version (a tuple of ints) needs the patch."""
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
           note="the gradient: the rows of each pixel combined in pairs"),
    _patch("resize-nearest", ["resize-nearest-backprop"], resize.install_nearest,
           note="the gradient: the rows of each pixel combined in pairs"),
    _patch("crop-and-resize", ["crop-and-resize-backprop"], crop.install,
           note="the gradients to images and to boxes, on the CPU as well"),
    _patch("softmax-xent", ["softmax-xent"], losses.install_dense, before=(2, 6),
           note="the fused op becomes log_softmax and a sum"),
    _patch("sparse-softmax-xent", ["sparse-softmax-xent"], losses.install_sparse, before=(2, 7),
           note="the fused op becomes log_softmax and a gather"),
    _patch("fused-batch-norm-inference", ["fused-batch-norm-inference-backprop"], batch_norm.install,
           note="the gradients with is_training=False"),
    _patch("scatter-nd", ["scatter-nd"], scatter.install_scatter_nd, before=(2, 7),
           note="sums of floating-point and complex numbers; those of integers have no order"),
    _patch("tensor-scatter-nd", ["tensor-scatter-nd-add", "tensor-scatter-nd-sub", "tensor-scatter-nd-update"],
           scatter.install_tensor_scatter, before=(2, 7),
           note="of several updates of one element the last wins; minima and maxima have no order"),
    _patch("resource-scatter", ["resource-scatter-ops"], variables.install_resource, before=(2, 8),
           note="repeated indices are made one first, for sparse optimizers too; of several values the last wins"),
    _patch("ref-scatter", ["scatter-ref-ops"], variables.install_ref, before=(2, 8),
           note="as with resource variables; from 2.8 on TensorFlow refuses these ops"),
    _patch("scatter-nd-variable", ["scatter-nd-update"], variables.install_nd, before=(2, 7),
           note="scatter_nd_add, _sub and _update of both kinds of variables"),
    _patch("bincount", ["bincount"], histogram.install, note="with weights, on the CPU as well; counts have no order"),
    _patch("sparse-dense-matmul", ["sparse-dense-matmul"], sparse.install,
           note="the rows of the product are summed exactly; from 2.7 on by TensorFlow's own segment sum"),
    _patch("depthwise-conv-filter", ["depthwise-conv-backprop-filter"], depthwise.install, before=(2, 10),
           note="the gradient to the filter"),
    _patch("adjust-contrast", ["adjust-contrast"], contrast.install, note="a mean and two products"),
])
