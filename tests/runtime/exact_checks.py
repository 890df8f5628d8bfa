"""Inside a real TensorFlow: are the additions of the replaced ops exact, so that no order of them can matter?

    python exact_checks.py        prints one JSON object, {"faults": [...], "compared": n, "control": {op: differed}}

The addends of every sum are permuted: the same bits have to come out each time, as close to the true sum as float32
additions would get, and NaN and infinities where they belong.  The control adds the same numbers one by one in float32
(float64), in the same orders: it has to differ, or the inputs prove nothing.
"""

import json
import math
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.ops import gen_math_ops  # noqa: E402

from tfdeterminism.patches import PATCHES, Replacements, chunked, exact_sum  # noqa: E402

tf1 = getattr(tf.compat, "v1", tf)
VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
# KEYS: number of segments into which rows are summed.
PERMUTATIONS, KEYS = 3, 7
MANY = 10 ** 7  # addends of one sign
RANDOM = np.random.RandomState(11)


def addends(kind):
    """Return {name: [N, 3] array of adversarial numbers}. kind: "float32" or "float64"."""
    large, tiny = (1e38, 1e-38) if kind == "float32" else (1e300, 1e-300)
    count = 2000
    spread = RANDOM.uniform(-1, 1, (count, 3)) * 10.0 ** RANDOM.randint(-30, 30, (count, 3))
    cancelling = RANDOM.uniform(-1, 1, (count, 3))
    cancelling[1::2] = -cancelling[::2] * (1 + 1e-6)
    vanishing = RANDOM.uniform(-1, 1, (count, 3))  # even float64 adds these up differently in each order
    vanishing[::4] = RANDOM.uniform(-1, 1, (count // 4, 3)) * 1e30
    vanishing[1::4] = -vanishing[::4]
    sides = np.where(RANDOM.uniform(size=(count, 3)) < 0.5, large / count, tiny)
    special = RANDOM.uniform(-1, 1, (count, 3))
    special[5, 0], special[50, 1], special[51, 1], special[700, 2] = np.inf, np.inf, -np.inf, np.nan
    return {
        "plain": RANDOM.uniform(-1, 1, (count, 3)),
        "spread": spread,
        "cancelling": cancelling,
        "vanishing": vanishing,
        "large beside tiny": sides * RANDOM.choice([-1, 1], (count, 3)),
        "denormal": RANDOM.uniform(-1, 1, (count, 3)) * (1e-40 if kind == "float32" else 1e-310),
        "special": special,
        "near overflow": RANDOM.uniform(0.5, 1, (count, 3)) * large / count * RANDOM.choice([-1, 1], (count, 3)),
    }


def ops():
    """Return (patch, function of (rows, ids), dtypes) for every form in which rows are summed by ids."""
    as_index = lambda ids: ids[:, None]  # noqa: E731
    zeros = lambda rows: tf.zeros([KEYS, 3], rows.dtype)  # noqa: E731

    def into_variable(rows, ids):
        variable = tf1.get_variable("v%d" % RANDOM.randint(2 ** 30), dtype=rows.dtype, use_resource=True,
                                    initializer=np.zeros((KEYS, 3), rows.dtype.as_numpy_dtype))
        with tf.control_dependencies([variable.initializer]):
            with tf.control_dependencies([tf1.scatter_add(variable, ids, rows)]):
                return variable.read_value()

    def product(rows, ids):
        """Multiply by a sparse matrix with one column for each addend."""
        count = rows.shape.as_list()[0]
        cells = tf.stack([tf.cast(ids, tf.int64), tf.range(count, dtype=tf.int64)], 1)
        ones = tf.ones([count], rows.dtype)
        return tf.sparse.sparse_dense_matmul(tf.SparseTensor(cells, ones, [KEYS, count]), rows)

    def gathered(rows, ids):
        params = tf.zeros([KEYS, 3], rows.dtype)
        return tf.convert_to_tensor(tf1.gradients(tf.gather(params, ids), params, grad_ys=rows)[0])
    return [
        ("segment", lambda rows, ids: tf.math.segment_sum(rows, tf.sort(ids)), ("float32", "float64")),
        ("unsorted-segment", lambda rows, ids: tf.math.unsorted_segment_sum(rows, ids, KEYS), ("float32", "float64")),
        ("unsorted-segment", gathered, ("float32",)),
        ("scatter-nd", lambda rows, ids: tf.scatter_nd(as_index(ids), rows, [KEYS, 3]), ("float32", "float64")),
        ("tensor-scatter-nd", lambda rows, ids: tf.tensor_scatter_nd_add(zeros(rows), as_index(ids), rows),
         ("float32",)),
        ("resource-scatter", into_variable, ("float32",)),
        ("bincount", lambda rows, ids: tf.stack([gen_math_ops.bincount(ids, KEYS, rows[:, i]) for i in range(3)], 1),
         ("float32", "float64")),
        ("sparse-dense-matmul", product, ("float32", "float64")),
    ]


def true_sums(rows, ids):
    """Return the sums, [KEYS, columns], correctly rounded to float64."""
    with np.errstate(all="ignore"):
        return np.array([[_sum(column) for column in rows[ids == key].astype("float64").T] for key in range(KEYS)])


def _sum(values):
    """Return the correctly rounded sum."""
    if np.isfinite(values).all():
        return math.fsum(values)
    return float(np.sum(values[~np.isfinite(values)]))


def bound(rows, ids):
    """Return the largest error of sequential additions: half a unit in the last place for each addition."""
    eps = np.finfo(rows.dtype).eps
    tiny = np.finfo(rows.dtype).tiny  # TensorFlow's threads take smaller numbers for zero
    size = np.zeros((KEYS, rows.shape[1]))
    with np.errstate(all="ignore"):
        for key in range(KEYS):
            magnitudes = np.abs(rows[ids == key].astype("float64"))
            size[key] = eps * magnitudes.max(0) * 2 + eps * magnitudes.sum(0) + tiny * (len(magnitudes) + 1)
    return size


def in_order(rows, ids):
    """The control: add sequentially, in the given order."""
    total = np.zeros((KEYS, rows.shape[1]), rows.dtype)
    with np.errstate(all="ignore"):
        for row, key in zip(rows, ids):
            total[key] += row
    return total


def orders(rows, ids):
    """Yield the addends as they are, and in random orders."""
    yield rows, ids
    for _ in range(PERMUTATIONS):
        order = RANDOM.permutation(len(ids))
        yield rows[order], ids[order]


def by_blocks(rows, ids):
    """Yield the addends in orders that keep sorted ids sorted."""
    order = np.argsort(ids, kind="mergesort")
    for permuted, keys in orders(rows[order], ids[order]):
        by_key = np.argsort(keys, kind="mergesort")
        yield permuted[by_key], keys[by_key]


def keys_for(rows):
    """Return a segment number for each row, in which every segment occurs."""
    ids = np.repeat(RANDOM.randint(0, KEYS - 1, len(rows) // 2), 2).astype("int32")  # what cancels has one key
    ids[2:4 * KEYS:4] = np.arange(KEYS)  # none without addends: segment_sum ends with the last
    return ids


def check(patch, call, rows, ids):
    """Return (faults, whether the control differed)."""
    session = Replacements()
    session.install(PATCHES[patch])
    try:
        with tf.Graph().as_default(), tf1.Session() as run:
            holders = [tf1.placeholder(rows.dtype, rows.shape), tf1.placeholder("int32", ids.shape)]
            result = call(*holders)
            results, control = [], set()
            for permuted, keys in (by_blocks if patch == "segment" else orders)(rows, ids):
                results.append(run.run(result, dict(zip(holders, (permuted, keys)))))
                # MANY rows get no control.
                control.add(in_order(permuted, keys).tobytes() if len(keys) < 10 ** 5 else b"")
    finally:
        session.restore()
    faults = []
    if len(set(result.tobytes() for result in results)) != 1:
        faults.append("%d results" % len(set(result.tobytes() for result in results)))
    with np.errstate(all="ignore"):
        expected = true_sums(rows, ids)
        limit = np.finfo(rows.dtype).max
        finite = np.isfinite(expected) & (np.abs(expected) <= limit)
        sums = results[0].astype("float64")
        wrong = np.abs(sums - expected) > bound(rows, ids)
    if (wrong & finite).any():
        faults.append("too far from the true sums: %s" % np.abs(sums - expected)[wrong & finite][:3])
    if (np.isnan(sums) != np.isnan(expected)).any() or (sums[np.isinf(expected)] != expected[np.isinf(expected)]).any():
        faults.append("other places of NaN or infinity")
    return faults, len(control) > 1


def main():
    results = [check_all(ops(), lambda name: True)]
    for narrow in (4, 1):  # in small chunks; with 1, rows of 3 columns are added in place where the version can
        chunked.CHUNK_ELEMENTS, exact_sum.MIN_WIDTH_IN_PLACE = 512, narrow
        results.append(check_all(ops(), ("vanishing", "special").__contains__))
    faults, control = [fault for part in results for fault in part[0]], results[0][2]
    compared = sum(part[1] for part in results)
    rows = RANDOM.uniform(0.5, 1, (MANY, 1)).astype("float32")
    faults += check("unsorted-segment", lambda rows, ids: tf.math.unsorted_segment_sum(rows, ids, KEYS), rows,
                    keys_for(rows))[0]
    print(json.dumps({"faults": faults, "compared": compared, "control": control}))


def check_all(forms, is_wanted):
    """Return (faults, number of comparisons, {kind of addends: whether the control differed}) of the wanted kinds."""
    faults, compared, control = [], 0, {}
    for patch, call, kinds in forms:
        if not PATCHES[patch].applies(VERSION):
            continue
        for kind in kinds:
            for name, rows in addends(kind).items():
                if not is_wanted(name):
                    continue
                results, differed = check(patch, call, rows.astype(kind), keys_for(rows))
                faults += ["%s %s, %s: %s" % (patch, kind, name, fault) for fault in results]
                compared += 1
                control[name] = control.get(name, False) or differed
    return faults, compared, control


if __name__ == "__main__":
    main()
