"""Cases of pooling, dilation, fake quantization and batch normalization.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
"""

import numpy as np
import tensorflow as tf
from tfdet_probe import case

tf1 = getattr(tf.compat, "v1", tf)


@case("cudnn-max-pool-backprop", ops=["MaxPoolGrad"], modes=("eager", "session"), layout=["NHWC", "NCHW"])
def max_pool(make, layout):
    """Windows overlap: one input gets several contributions."""
    x = make.uniform((4, 32, 32, 8) if layout == "NHWC" else (4, 8, 32, 32))
    window = [1, 3, 3, 1] if layout == "NHWC" else [1, 1, 3, 3]
    return make.gradient(lambda x: tf.nn.max_pool(x, window, [1] * 4, "SAME", data_format=layout), [x], wrt=[0])


@case("cudnn-max-pool-backprop", ops=["MaxPool3DGrad"], modes=("eager", "function"))
def max_pool3d(make):
    x = make.uniform((2, 8, 16, 16, 4))
    return make.gradient(lambda x: tf.nn.max_pool3d(x, [1, 3, 3, 3, 1], [1] * 5, "SAME"), [x], wrt=[0])


@case("max-pool-grad-with-argmax", ops=["MaxPoolGradWithArgmax"], modes=("eager", "session"))
def max_pool_with_argmax(make):
    x = make.uniform((4, 32, 32, 8))
    return make.gradient(lambda x: tf1.nn.max_pool_with_argmax(x, [1, 3, 3, 1], [1] * 4, "SAME")[0], [x], wrt=[0])


@case("dilation2d-backprop", ops=["Dilation2DBackpropInput", "Dilation2DBackpropFilter"],
      modes=("eager", "session"))
def dilation2d(make):
    x, weights = make.uniform((4, 32, 32, 8)), make.uniform((3, 3, 8))
    return make.gradient(lambda x, w: tf1.nn.dilation2d(
        x, w, strides=[1] * 4, rates=[1] * 4, padding="SAME"), [x, weights], wrt=[0, 1])


@case("fake-quant-min-max-vars-grad", ops=["FakeQuantWithMinMaxVarsGradient"], modes=("eager", "session"))
def fake_quant(make):
    x = make.uniform((64, 1024))
    low, high = np.array(-0.5, "float32"), np.array(0.5, "float32")
    return make.gradient(lambda x, low, high: tf.quantization.fake_quant_with_min_max_vars(x, low, high),
                         [x, low, high], wrt=[0, 1, 2])


@case("fake-quant-min-max-vars-grad", ops=["FakeQuantWithMinMaxVarsPerChannelGradient"],
      modes=("function",))
def fake_quant_per_channel(make):
    x = make.uniform((4096, 8))
    low, high = np.full(8, -0.5, "float32"), np.full(8, 0.5, "float32")
    return make.gradient(lambda x, low, high: tf.quantization.fake_quant_with_min_max_vars_per_channel(x, low, high),
                         [x, low, high], wrt=[0, 1, 2])


@case("fused-batch-norm-inference-backprop",
      ops=["FusedBatchNormGrad|FusedBatchNormGradV2|FusedBatchNormGradV3"],
      modes=("eager", "session"), layout=["NHWC", "NCHW"])
def batch_norm_inference(make, layout):
    x = make.uniform((64, 16, 16, 4) if layout == "NHWC" else (64, 4, 16, 16))
    scale, offset, mean = [make.uniform((4,)) for _ in range(3)]
    variance = make.uniform((4,), low=0.5, high=1.5)
    return make.gradient(lambda x, scale, offset: tf1.nn.fused_batch_norm(
        x, scale, offset, mean, variance, data_format=layout, is_training=False)[0], [x, scale, offset], wrt=[0, 1, 2])
