import multiprocessing

import numpy as np

from preprocessing import crops


def train(images):
    import tensorflow as tf

    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(2)])
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(images, np.arange(len(images)) % 2, epochs=1, verbose=0, shuffle=False)
    print("trained on", images.shape)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    worker = context.Process(target=crops, args=(results, 12))
    worker.start()
    images = results.get()
    worker.join()
    train(images)
