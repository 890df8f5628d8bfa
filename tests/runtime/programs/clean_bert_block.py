"""A transformer block as in BERT: self-attention, layer norm, gelu, seeded dropout, Adam by hand.

expect: same
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
data = np.random.RandomState(1)
BATCH, LENGTH, WIDTH, HEADS = 4, 16, 32, 4


def variable(*shape):
    return tf.Variable((0.1 * data.standard_normal(shape)).astype(np.float32))


table = variable(100, WIDTH)
positions = variable(LENGTH, WIDTH)
qkv, project = variable(WIDTH, 3 * WIDTH), variable(WIDTH, WIDTH)
widen, narrow, bias = variable(WIDTH, 4 * WIDTH), variable(4 * WIDTH, WIDTH), variable(4 * WIDTH)
weights = [table, positions, qkv, project, widen, narrow, bias]
first = [tf.Variable(tf.zeros_like(w)) for w in weights]
second = [tf.Variable(tf.zeros_like(w)) for w in weights]


def normed(x):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-6)


def dropout(x, seed):
    keep = tf.cast(tf.random.uniform(tf.shape(x), seed=seed) > 0.1, tf.float32)
    return x * keep / 0.9


def attention(x):
    parts = tf.reshape(tf.matmul(tf.reshape(x, [-1, WIDTH]), qkv), [BATCH, LENGTH, 3, HEADS, WIDTH // HEADS])
    q, k, v = tf.unstack(tf.transpose(parts, [2, 0, 3, 1, 4]))
    scores = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / np.sqrt(WIDTH / HEADS))
    mixed = tf.transpose(tf.matmul(dropout(scores, 5), v), [0, 2, 1, 3])
    return tf.reshape(tf.matmul(tf.reshape(mixed, [-1, WIDTH]), project), [BATCH, LENGTH, WIDTH])


def gelu(x):
    return 0.5 * x * (1.0 + tf.math.erf(x / np.sqrt(2.0)))


def block(x):
    x = normed(x + dropout(attention(x), 7))
    wide = gelu(tf.nn.bias_add(tf.matmul(tf.reshape(x, [-1, WIDTH]), widen), bias))
    return normed(x + tf.reshape(tf.matmul(wide, narrow), [BATCH, LENGTH, WIDTH]))


@tf.function
def train_step(tokens, targets):
    with tf.GradientTape() as tape:
        x = block(tf.gather(table, tokens) + positions)
        logits = tf.matmul(tf.reshape(x, [-1, WIDTH]), table, transpose_b=True)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(targets, [-1]), logits=logits))
    for w, m, v, g in zip(weights, first, second, tape.gradient(loss, weights)):
        g = tf.convert_to_tensor(g)
        m.assign(0.9 * m + 0.1 * g)
        v.assign(0.99 * v + 0.01 * tf.square(g))
        w.assign_sub(0.01 * m / (tf.sqrt(v) + 1e-6))
    return loss


for step in range(3):
    tokens = tf.constant(data.randint(0, 100, [BATCH, LENGTH]).astype(np.int32))
    loss = train_step(tokens, tf.roll(tokens, 1, 1))
print("loss", float(loss))
