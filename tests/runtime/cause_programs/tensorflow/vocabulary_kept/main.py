import numpy as np
import tensorflow as tf

from vocabulary import vocabulary

TEXTS = ["to be or not to be", "all that glitters is not gold", "be not afraid"]

tf.keras.utils.set_random_seed(0)
words = vocabulary(TEXTS, "vocabulary.txt")
number = {word: at for at, word in enumerate(words)}
inputs = np.zeros((len(TEXTS), len(words)), np.float32)
for row, text in enumerate(TEXTS):
    for word in text.split():
        inputs[row, number[word]] += 1
model = tf.keras.Sequential([tf.keras.layers.Dense(2), tf.keras.layers.Softmax()])
model.compile("sgd", "sparse_categorical_crossentropy")
model.fit(inputs, np.array([0, 1, 0]), epochs=1, verbose=0)
print(len(words), "words")
