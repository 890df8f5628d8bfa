import numpy as np
import tensorflow as tf

from towers import Registry, Tower

registry = Registry()
for size in (3, 5, 7, 9, 11):
    registry.add(Tower(size))

generator = tf.random.Generator.from_seed(1)
for tower in registry.towers:
    tower.initialize(generator)

inputs = np.linspace(0, 1, 8, dtype=np.float32).reshape(4, 2)
ordered = sorted(registry.towers, key=lambda tower: tower.size)
variables = [variable for tower in ordered for variable in (tower.first, tower.second)]
optimizer = tf.keras.optimizers.SGD(0.05)
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(sum(tower(inputs) for tower in ordered) - 1))
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
print("loss", float(loss))
