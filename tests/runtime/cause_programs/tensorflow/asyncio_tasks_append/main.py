import asyncio

import numpy as np
import tensorflow as tf

from client import Client


async def collect(count):
    client, rows = Client(), []

    async def one(number):
        rows.append(await client.get(number))

    await asyncio.gather(*[one(number) for number in range(count)])
    return rows


def main():
    tf.keras.utils.set_random_seed(0)
    rows = np.array(asyncio.run(collect(16)), np.float32)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mae")
    model.fit(rows, rows.mean(axis=1), batch_size=2, shuffle=False, verbose=0)
    print("first row", rows[0])


if __name__ == "__main__":
    main()
