"""Four threads of tf.train.batch read examples from one producer.

form: TF1 session
in: tf1.14
expect: QueueDequeueManyV2 | input pipeline/open order
"""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.set_random_seed(1)
rows = np.random.RandomState(1).standard_normal([60, 4]).astype(np.float32)
row = tf1.train.slice_input_producer([tf.constant(rows)], shuffle=False)[0]
slow = row + 0.0 * tf.reduce_sum(tf.sin(tf.ones([300, 300]) * row[0]))
batch = tf1.train.batch([slow], batch_size=6, num_threads=4)  # <- culprit
weights = tf1.get_variable("weights", [4, 1], initializer=tf1.ones_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(batch, weights) - 1.0))
train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    coordinator = tf1.train.Coordinator()
    threads = tf1.train.start_queue_runners(session, coordinator)
    for _ in range(8):
        session.run(train)
    print(session.run(weights).sum())
    coordinator.request_stop()
    session.close()
