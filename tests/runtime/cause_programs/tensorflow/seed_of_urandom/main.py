import tensorflow as tf

from seeds import fresh_seed


class Trainer:
    def __init__(self, width):
        self.initializer = tf.keras.initializers.GlorotUniform(seed=fresh_seed())
        self.weights = tf.Variable(self.initializer([width, 1]))
        self.optimizer = tf.keras.optimizers.SGD(0.1)

    def step(self, inputs, targets):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(inputs @ self.weights - targets))
        self.optimizer.apply_gradients(zip(tape.gradient(loss, [self.weights]), [self.weights]))
        return float(loss)


def main():
    inputs = tf.reshape(tf.range(24, dtype=tf.float32), [6, 4]) / 24
    trainer = Trainer(4)
    print([trainer.step(inputs, tf.reduce_sum(inputs, axis=1, keepdims=True)) for _ in range(4)])


if __name__ == "__main__":
    main()
