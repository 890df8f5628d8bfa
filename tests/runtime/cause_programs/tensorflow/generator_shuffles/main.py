import tensorflow as tf

from reader import Reader

tf.keras.utils.set_random_seed(7)
reader = Reader(rows=24)
data = tf.data.Dataset.from_generator(reader.read, output_signature=tf.TensorSpec([3], tf.float32)).batch(6)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.RMSprop(0.01)
for number, batch in enumerate(data):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(batch) - tf.reduce_prod(batch, axis=1, keepdims=True)))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    print("batch", number, "loss", float(loss))
