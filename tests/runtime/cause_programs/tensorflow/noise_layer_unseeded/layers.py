import numpy as np
import tensorflow as tf


class NoisyDense(tf.keras.layers.Layer):
    def __init__(self, units, scale=0.1):
        super().__init__()
        self.dense = tf.keras.layers.Dense(units)
        self.scale = scale
        self.source = np.random.Generator(np.random.PCG64())

    def build(self, shape):
        self.dense.build(shape)

    def call(self, inputs, training=False):
        outputs = self.dense(inputs)
        if training:
            noise = self.source.normal(0, self.scale, outputs.shape)
            outputs = outputs + tf.constant(noise, outputs.dtype)
        return outputs
