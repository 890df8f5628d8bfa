"""Steps of training on the virtual GPU and on TensorFlow's own CPU: prints the largest difference of each as JSON."""

import json
import sys

import numpy as np
import tensorflow as tf

if tf.__version__.startswith("1."):
    tf.compat.v1.enable_eager_execution()
keras = tf.keras
LAYERS = {
    "dense": lambda start: [
        keras.layers.Dense(16, activation="relu", kernel_initializer=start),
        keras.layers.Dense(5, activation="softmax", kernel_initializer=start),
    ],
    "convolutions": lambda start: [
        keras.layers.Conv2D(8, 3, padding="same", activation="relu", kernel_initializer=start),
        keras.layers.MaxPool2D(2),
        keras.layers.Conv2D(6, 3, strides=2, use_bias=False, kernel_initializer=start),
        keras.layers.BatchNormalization(),
        keras.layers.AveragePooling2D(2),
        keras.layers.Flatten(),
        keras.layers.Dense(5, activation="softmax", kernel_initializer=start),
    ],
}
SHAPES = {"dense": (32, 20), "convolutions": (8, 12, 12, 3)}


def trained(kind, device, initial_weights):
    """Return the loss and variables after three steps, from `initial_weights` or the layers' own initial ones."""
    rng = np.random.RandomState(0)
    x, y = rng.randn(*SHAPES[kind]).astype(np.float32), rng.randint(0, 5, SHAPES[kind][0])
    with tf.device(device):
        model = keras.Sequential(LAYERS[kind](keras.initializers.GlorotUniform(seed=7)))
        model(tf.constant(x[:1]))
        for variable, value in zip(model.variables, initial_weights or []):
            variable.assign(value)
        first = [variable.numpy() for variable in model.variables]
        for _ in range(3):
            with tf.GradientTape() as tape:
                output = model(tf.constant(x), training=True)
                loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(tf.constant(y), output))
            assert device in loss.device, loss.device
            for variable, slope in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
                variable.assign_sub(0.1 * slope)
        return first, [loss.numpy()] + [variable.numpy() for variable in model.variables]


def main():
    differences = {}
    for kind in sys.argv[1:]:
        first, on_gpu = trained(kind, "GPU:0", None)
        _, on_cpu = trained(kind, "CPU:0", first)
        differences[kind] = max(float(np.abs(a - b).max()) for a, b in zip(on_gpu, on_cpu))
        assert not np.array_equal(first[0], on_gpu[1])
    print(json.dumps(differences))


main()
