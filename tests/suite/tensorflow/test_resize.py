"""Cases of resizing images.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
"""

import tensorflow as tf
from tfdet_probe import case

tf1 = getattr(tf.compat, "v1", tf)


@case("resize-bilinear-backprop", ops=["ResizeBilinearGrad"], modes=("eager", "session"),
      dtype=["float32", "float64"])
def resize_bilinear(make, dtype):
    image = make.uniform((1, 25, 12, 3), dtype)
    return make.gradient(lambda i: tf1.image.resize_bilinear(i, [200, 250]), [image], wrt=[0])


@case("resize-bilinear-backprop", ops=["ResizeBilinear"], modes=("function",), align=[False, True])
def resize_bilinear_forward(make, align):
    image = make.uniform((1, 25, 12, 3))
    return make.forward(lambda i: tf1.image.resize_bilinear(i, [200, 250], align_corners=align), [image])


@case("resize-nearest-backprop", ops=["ResizeNearestNeighborGrad"], modes=("eager", "session"),
      dtype=["float16", "float32"])
def resize_nearest(make, dtype):
    image = make.uniform((2, 16, 16, 4), dtype)
    return make.gradient(lambda i: tf1.image.resize_nearest_neighbor(i, [128, 128]), [image], wrt=[0])
