"""Digests inside TensorFlow, of values and of random single changes of them: prints how many were missed."""

import json

import numpy as np
import tensorflow as tf

from tfdeterminism.trace.capture import digest
from tfdeterminism.trace.capture.tensorflow import digests, internals

if tf.__version__ < "2":
    tf.compat.v1.enable_eager_execution()
random = np.random.RandomState(0)
# missed: digests that a change left equal; wrong: digests that differ from another computation of them; tried: changes.
missed, wrong, tried = 0, 0, 0


def both(array, kind):
    """Return a tensor's two kinds of digest in traces. kind: its type; 16-bit floats are bitcast from the array."""
    tensor = tf.bitcast(tf.constant(array), kind) if kind in ("bfloat16", "float16") else tf.constant(array)
    summed = internals.value(digests.weighted_sum(tensor)).tobytes()
    return summed, internals.value(digests.fingerprint(tensor)).tobytes()


def mutations(array):
    flat = array.reshape(-1)
    for number in range(60):
        copy = flat.copy()
        i, j = random.randint(len(flat), size=2)
        bits = copy.view(np.uint8)
        if number % 4 == 0:
            bits[random.randint(len(bits))] ^= 1 << random.randint(8)  # one bit: 1 ulp, a sign, a NaN's payload
        elif number % 4 == 1:
            copy[[i, j]] = copy[[j, i]]
        elif number % 4 == 2:
            copy = np.roll(copy, 1 + i)
        else:  # moves that a sum with linear weights would miss
            at = random.randint(len(bits) - 2)
            bits[at:at + 3] += np.array([1, 254, 1], np.uint8)
        if copy.tobytes() != flat.tobytes():
            yield copy.reshape(array.shape)


values = {name: random.randint(0, 2 ** 16, size=(6, 5)).astype(np.uint16) for name in ("bfloat16", "float16")}
values["float32"] = random.standard_normal((6, 5)).astype(np.float32)
values["float64"] = random.standard_normal((6, 5))
values["complex64"] = (random.standard_normal((6, 5)) + 1j).astype(np.complex64)
values["int32"] = random.randint(-9, 9, size=(6, 5)).astype(np.int32)
values["int64"] = random.randint(-9, 9, size=(6, 5))
values["uint8"] = random.randint(0, 9, size=(6, 5)).astype(np.uint8)
for kind, array in sorted(values.items()):
    first = both(array, kind)
    wrong += int.from_bytes(first[0], "little") != digest.weighted_sum(array)
    for other in mutations(array):
        tried += 1
        missed += sum(one == two for one, two in zip(first, both(other, kind)))
different = [both(np.array(value, np.float32), "float32") for value in ([], [0.0], [-0.0], [0.0, 0.0], 0.5)]
missed += sum(len(different) - len(set(one)) for one in zip(*different))
flags = [both(np.array(value), "bool") for value in ([True, False], [False, True], [])]
missed += sum(len(flags) - len(set(one)) for one in zip(*flags))
several = [tf.constant(values["float32"] + number) for number in range(3)]  # side by side, each as if alone
alone = [internals.value(digests.fingerprint(one)).tobytes() for one in several]
wrong += internals.value(digests.fingerprints(several)).tobytes() != b"".join(alone)
print(json.dumps({"missed": missed, "wrong": wrong, "tried": tried}))
