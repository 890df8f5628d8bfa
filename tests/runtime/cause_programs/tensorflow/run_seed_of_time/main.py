import numpy as np
import tensorflow as tf

from experiment import Experiment


def build_model():
    return tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)])


def main():
    experiment = Experiment("regression")
    print(experiment.describe())
    tf.keras.utils.set_random_seed(experiment.seed)
    inputs = np.linspace(-1, 1, 32, dtype=np.float32)[:, None]
    model = build_model()
    model.compile(optimizer="sgd", loss="mse")
    model.fit(inputs, inputs**2, epochs=1, verbose=0)
    print("loss", model.evaluate(inputs, inputs**2, verbose=0))


if __name__ == "__main__":
    main()
