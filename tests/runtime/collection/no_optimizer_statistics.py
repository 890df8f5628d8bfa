"""Only statistics: no weights, no tape, no optimizer.

form: no optimizer
expect: op=RandomStandardNormal | class=seed or state
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
sample = tf.random.normal([1024])  # <- culprit
mean, variance = tf.nn.moments(sample, [0])
print(float(mean), float(variance))
