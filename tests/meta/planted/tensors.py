"""Faults that only a real TensorFlow can have; for TensorFlow 1.13 to 2.21.

`make` is the probe's builder of cases: make.forward(function, inputs) calls a function, make.gradient differentiates
it. ops: the op types that must run on the requested device; unplaced: why there are none to check.
"""

import numpy as np
import tensorflow as tf

from tfdet_probe import case

EAGER = ["eager", "function"]


@case("clean", ops=["MatMul"])
def clean(make):
    a, b = make.uniform((32, 16)), make.uniform((16, 8))
    return make.gradient(tf.matmul, [a, b], wrt=[0, 1])


@case("other-device", ops=["MatMul"], modes=EAGER)
def other_device(make):
    config = tf.config.experimental
    cpu = config.list_physical_devices("CPU")[0]
    config.set_virtual_device_configuration(cpu, [config.VirtualDeviceConfiguration()] * 2)

    def stray(a):
        with tf.device("/device:CPU:1"):
            return tf.matmul(a, a)
    return make.forward(stray, [make.uniform((8, 8))])


@case("no-such-device", ops=["MatMul"])
def no_such_device(make):
    def stray(a):
        with tf.device("/device:GPU:7"):
            return tf.matmul(a, a)
    return make.forward(stray, [make.uniform((8, 8))])


@case("folded-away", ops=["MatMul"], modes=["function", "session"])
def folded_away(make):
    value = make.uniform((4, 4))
    return make.forward(lambda a: a + tf.matmul(tf.constant(value), tf.constant(value)), [value])


@case("other-op", ops=["Conv2D"])
def other_op(make):
    return make.forward(lambda a: tf.matmul(a, a), [make.uniform((4, 4))])


@case("unseeded", ops=["RandomStandardNormal"])
def unseeded(make):
    return make.forward(lambda a: a + tf.random.normal([4]), [make.uniform((4,))])


@case("missing", unplaced="planted")
def missing(make):
    return make.forward(lambda a: tf.nn.no_such_function(a), [make.uniform((4,))])


@case("no-kernel", unplaced="planted")
def no_kernel(make):
    from tensorflow.python.ops import gen_nccl_ops  # of GPUs only
    return make.forward(lambda a: gen_nccl_ops.nccl_all_reduce(a, "sum", 1, "x"), [make.uniform((4,))])


@case("bug-shapes", unplaced="planted")
def bug_shapes(make):
    return make.forward(tf.matmul, [make.uniform((4, 3)), make.uniform((4, 3))])


@case("bug-attribute", unplaced="planted")
def bug_attribute(make):
    return make.forward(lambda a: np.zeros(3).numpy(), [make.uniform((4,))])


@case("no-gradient-kernel", ops=["Conv2DBackprop(Filter|Input)"])
def no_gradient_kernel(make):
    """Two groups, which TensorFlow's own kernels on a CPU can go forward only."""
    x, weights = make.uniform((4, 16, 16, 8)), make.uniform((3, 3, 4, 8))
    return make.gradient(lambda x, w: tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), [x, weights], wrt=[1])


@case("bug-value", ops=["GatherV2"])
def bug_value(make):
    """An argument of the case that no kernel takes."""
    return make.gradient(lambda a: tf.gather(a, [7]), [make.uniform((4,))], wrt=[0])


@case("bug-own-gradient", ops=["GatherV2"])
def bug_own_gradient(make):
    """A gradient function of the case, wrong by itself."""
    @tf.custom_gradient
    def halved(a):
        return a / 2, lambda upstream: tf.gather(upstream, [7, 7, 7, 7])
    return make.gradient(halved, [make.uniform((4,))], wrt=[0])


@case("strings", unplaced="planted")
def strings(make):
    return make.forward(lambda a: tf.strings.as_string(a), [make.integers(0, 99, (4,))])


@case("clean-after-all", ops=["MatMul"])
def clean_after_all(make):
    return make.forward(lambda a: tf.matmul(a, a), [make.uniform((8, 8))])
