import tensorflow as tf
from tfdet_probe import case


# Under determinism TensorFlow 2.5 to 2.7 broadcast the bias: its gradient is a sum.
@case("bias-add-backprop", ops=["BiasAddGrad|Sum"], modes=("eager", "session"),
      dtype=["float16", "float32", "float64"], layout=["NHWC", "NCHW"])
def bias_add(make, dtype, layout):
    value = make.uniform((10, 14, 14, 8) if layout == "NHWC" else (10, 8, 14, 14), dtype)
    bias = make.uniform((8,), dtype)
    return make.gradient(lambda v, b: tf.nn.bias_add(v, b, data_format=layout), [value, bias], wrt=[1])
