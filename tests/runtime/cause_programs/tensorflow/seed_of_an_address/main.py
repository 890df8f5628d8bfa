import numpy as np
import tensorflow as tf

from sampling import Sampler

tf.random.set_seed(0)


def main():
    sampler = Sampler(np.arange(60, dtype=np.float32).reshape(20, 3) / 60)
    weights = tf.Variable(tf.zeros([3, 1]))
    optimizer = tf.keras.optimizers.SGD(0.1)
    for _ in range(5):
        rows = sampler.sample(4)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(rows @ weights - rows[:, :1]))
        optimizer.apply_gradients(zip(tape.gradient(loss, [weights]), [weights]))
    print("loss", float(loss))


if __name__ == "__main__":
    main()
