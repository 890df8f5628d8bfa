"""Noise from NumPy comes over a queue, from a thread of its own.

expect: op=PyFunc | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
generator = np.random.RandomState()


def sample():
    return generator.standard_normal(4).astype(np.float32)


queue = tf1.FIFOQueue(10, tf.float32, [[4]])
enqueue = queue.enqueue(tf1.py_func(sample, [], tf.float32))  # <- culprit
tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [enqueue]))
weights = tf1.get_variable("weights", [4], initializer=tf1.ones_initializer())
loss = tf.reduce_sum((weights * queue.dequeue() - 1.0) ** 2)
train = tf1.train.AdamOptimizer(0.1).minimize(loss)

with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    coordinator = tf1.train.Coordinator()
    threads = tf1.train.start_queue_runners(session, coordinator)
    for step in range(4):
        _, value = session.run([train, loss])
    coordinator.request_stop()
    coordinator.join(threads)
print("loss", value)
