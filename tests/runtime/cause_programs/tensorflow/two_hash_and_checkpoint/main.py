import tensorflow as tf

from state import State
from tokens import numbered

WORDS = "red green blue cyan pink black white".split()

tf.random.set_seed(0)
numbers = numbered(WORDS)
state = State("state.npy", len(WORDS))
table = tf.Variable(state.load())
optimizer = tf.keras.optimizers.SGD(0.1)
for word in WORDS:
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(table[numbers[word]] - len(word)))
    optimizer.apply_gradients(zip(tape.gradient(loss, [table]), [table]))
state.save(table.numpy())
print("loss", float(loss))
