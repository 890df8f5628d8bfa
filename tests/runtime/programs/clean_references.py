"""Reference variables of TensorFlow 1: a read hands on the variable's memory, and the update comes soon after it.

expect: same
"""
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
weights = [tf1.get_variable("weights_%d" % number, [2000000], initializer=tf1.ones_initializer(), use_resource=False)
           for number in range(3)]
updates = [tf1.assign_sub(one, 0.1 * one.value()) for one in weights]
with tf.control_dependencies(updates):
    loss = tf.add_n([tf.reduce_sum(one.read_value()[:10]) for one in weights])

with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for step in range(4):
        value = session.run(loss)
print("loss", value)
