import math
import uuid
from concurrent.futures import ThreadPoolExecutor

import tensorflow as tf


def write(folder, number):
    values = [math.sin(number), math.cos(number), number / 10]
    feature = tf.train.Feature(float_list=tf.train.FloatList(value=values))
    example = tf.train.Example(features=tf.train.Features(feature={"row": feature}))
    with tf.io.TFRecordWriter(str(folder / f"part{number:02}-{uuid.uuid4().hex}.tfrecord")) as writer:
        writer.write(example.SerializeToString())


def write_all(folder, count):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: write(folder, number), range(count)))


def parse(text):
    return tf.io.parse_single_example(text, {"row": tf.io.FixedLenFeature([3], tf.float32)})["row"]
