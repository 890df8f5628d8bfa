"""Cases of convolutions and their gradients.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
"""

import tensorflow as tf
from tfdet_probe import case


def conv(x, weights, layout="NHWC", stride=1, dilation=1, padding="SAME"):
    spread = (lambda n: [1, n, n, 1]) if layout == "NHWC" else (lambda n: [1, 1, n, n])
    return tf.nn.conv2d(x, weights, strides=spread(stride), padding=padding, data_format=layout,
                        dilations=spread(dilation))


@case("cudnn-conv-autotune", ops=["Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput"],
      modes=("eager", "session"), layout=["NHWC", "NCHW"])
def conv_layers(make, layout):
    """Several layer configurations, forward and backward: each is tuned by itself."""
    x = make.uniform((4, 32, 32, 8) if layout == "NHWC" else (4, 8, 32, 32))
    weights = [make.uniform(s) for s in [(3, 3, 8, 16), (1, 1, 16, 16), (5, 5, 16, 8)]]

    def layers(x, one, two, three):
        hidden = conv(conv(x, one, layout, stride=2), two, layout)
        return conv(hidden, three, layout, padding="VALID")
    return make.gradient(layers, [x] + weights, wrt=[0, 1, 2, 3])


@case("cudnn-conv-autotune", ops=["Conv3D"], modes=("function",))
def conv3d_dilated(make):
    """The configuration that cuDNN 7's default deterministic forward algorithm does not support."""
    x, weights = make.uniform((2, 3, 5, 7, 6)), make.uniform((3, 3, 3, 3, 2))
    return make.forward(lambda x, w: tf.nn.conv3d(
        x, w, strides=[1] * 5, padding="VALID", data_format="NCDHW", dilations=[1, 1, 2, 2, 2]), [x, weights])


@case("cudnn-conv-backprop-filter", ops=["Conv2DBackpropFilter"],
      modes=("eager", "session"), layout=["NHWC", "NCHW"])
def conv_to_filter(make, layout):
    x = make.uniform((8, 64, 64, 8) if layout == "NHWC" else (8, 8, 64, 64))
    weights = make.uniform((3, 3, 8, 8))
    return make.gradient(lambda x, w: conv(x, w, layout), [x, weights], wrt=[1])


@case("cudnn-conv-backprop-filter", ops=["Conv2DBackpropFilter"], modes=("eager",))
def dilated_conv_to_filter(make):
    x, weights = make.uniform((8, 64, 64, 8)), make.uniform((3, 3, 8, 8))
    return make.gradient(lambda x, w: conv(x, w, dilation=2), [x, weights], wrt=[1])


@case("grouped-conv-backprop-filter", ops=["Conv2DBackpropFilter"], modes=("session",))
def grouped_conv_to_filter(make):
    """Two groups: on a CPU old TensorFlows abort, then refuse, then can."""
    x, weights = make.uniform((4, 16, 16, 8)), make.uniform((3, 3, 4, 8))
    return make.gradient(lambda x, w: conv(x, w), [x, weights], wrt=[1])


@case("cudnn-conv-backprop-filter", ops=["Conv3DBackpropFilterV2"], modes=("function",))
def conv3d_to_filter(make):
    x, weights = make.uniform((2, 12, 16, 16, 4)), make.uniform((3, 3, 3, 4, 4))
    return make.gradient(lambda x, w: tf.nn.conv3d(x, w, strides=[1] * 5, padding="SAME"), [x, weights], wrt=[1])


@case("cudnn-conv-backprop-input", ops=["Conv2DBackpropInput"],
      modes=("eager", "session"), layout=["NHWC", "NCHW"])
def conv_to_input(make, layout):
    x = make.uniform((1, 16, 16, 1) if layout == "NHWC" else (1, 1, 16, 16))
    weights = make.uniform((7, 7, 1, 3))
    return make.gradient(lambda x, w: conv(x, w, layout), [x, weights], wrt=[0])


@case("cudnn-conv-backprop-input", ops=["Conv2DBackpropInput"], modes=("function",))
def conv_transpose(make):
    x, weights = make.uniform((1, 16, 16, 3)), make.uniform((7, 7, 1, 3))
    return make.forward(lambda x, w: tf.nn.conv2d_transpose(
        x, w, [1, 16, 16, 1], strides=[1, 1, 1, 1], padding="SAME"), [x, weights])


@case("cudnn-conv-backprop-input", ops=["Conv3DBackpropInputV2"], modes=("function",))
def conv3d_to_input(make):
    x, weights = make.uniform((2, 12, 16, 16, 4)), make.uniform((3, 3, 3, 4, 4))
    return make.gradient(lambda x, w: tf.nn.conv3d(x, w, strides=[1] * 5, padding="SAME"), [x, weights], wrt=[0])


@case("depthwise-conv-backprop-filter", ops=["DepthwiseConv2dNativeBackpropFilter"],
      modes=("eager", "session"), channels=[1, 2])
def depthwise_to_filter(make, channels):
    """One input channel may go through cuDNN; more go through TensorFlow's own kernel."""
    x, weights = make.uniform((2, 64, 128, channels)), make.uniform((7, 7, channels, 4))
    return make.gradient(lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"), [x, weights], wrt=[1])
