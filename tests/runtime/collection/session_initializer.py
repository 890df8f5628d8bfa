"""The initial value of a weight is drawn without a seed.

form: TF1 session
expect: op=TruncatedNormal | class=seed or state
"""
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
initial = tf1.truncated_normal_initializer(stddev=0.1)
weights = tf1.get_variable("weights", [8, 1], initializer=initial)  # <- culprit
loss = tf.reduce_mean(tf.square(tf.matmul(tf.ones([16, 8]), weights) - 1.0))
train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for step in range(4):
        _, value = session.run([train, loss])
print(value)
