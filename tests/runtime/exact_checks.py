"""Inside a real TensorFlow: are the additions of the patched ops exact, so that no order of them can matter?

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
PERMUTATIONS, KEYS = 3, 7
MANY = 10 ** 7  # addends of one sign
RANDOM = np.random.RandomState(11)


def addends(kind):
    """name -> [N, 3] adversarial numbers."""
    large, tiny = (1e38, 1e-38) if kind == "float32" else (1e300, 1e-300)
    many = 2000
    spread = RANDOM.uniform(-1, 1, (many, 3)) * 10.0 ** RANDOM.randint(-30, 30, (many, 3))
    cancelling = RANDOM.uniform(-1, 1, (many, 3))
    cancelling[1::2] = -cancelling[::2] * (1 + 1e-6)
    vanishing = RANDOM.uniform(-1, 1, (many, 3))  # even float64 adds these up differently in each order
    vanishing[::4] = RANDOM.uniform(-1, 1, (many // 4, 3)) * 1e30
    vanishing[1::4] = -vanishing[::4]
    sides = np.where(RANDOM.uniform(size=(many, 3)) < 0.5, large / many, tiny)
    special = RANDOM.uniform(-1, 1, (many, 3))
    special[5, 0], special[50, 1], special[51, 1], special[700, 2] = np.inf, np.inf, -np.inf, np.nan
    return {
        "plain": RANDOM.uniform(-1, 1, (many, 3)),
        "spread": spread,
        "cancelling": cancelling,
        "vanishing": vanishing,
        "large beside tiny": sides * RANDOM.choice([-1, 1], (many, 3)),
        "denormal": RANDOM.uniform(-1, 1, (many, 3)) * (1e-40 if kind == "float32" else 1e-310),
        "special": special,
        "near overflow": RANDOM.uniform(0.5, 1, (many, 3)) * large / many * RANDOM.choice([-1, 1], (many, 3)),
    }


def ops():
    """patch -> (call of (rows, ids), original, types): every form in which rows are summed by ids."""
    places = lambda ids: ids[:, None]  # noqa: E731
    zeros = lambda rows: tf.zeros([KEYS, 3], rows.dtype)  # noqa: E731

    def into_variable(rows, ids):
        variable = tf1.get_variable("v%d" % RANDOM.randint(2 ** 30), dtype=rows.dtype, use_resource=True,
                                    initializer=np.zeros((KEYS, 3), rows.dtype.as_numpy_dtype))
        with tf.control_dependencies([variable.initializer]):
            with tf.control_dependencies([tf1.scatter_add(variable, ids, rows)]):
                return variable.read_value()

    def product(rows, ids):
        """One column of the sparse matrix for each addend."""
        many = rows.shape.as_list()[0]
        cells = tf.stack([tf.cast(ids, tf.int64), tf.range(many, dtype=tf.int64)], 1)
        ones = tf.ones([many], rows.dtype)
        return tf.sparse.sparse_dense_matmul(tf.SparseTensor(cells, ones, [KEYS, many]), rows)

    def gathered(rows, ids):
        params = tf.zeros([KEYS, 3], rows.dtype)
        return tf.convert_to_tensor(tf1.gradients(tf.gather(params, ids), params, grad_ys=rows)[0])
    return [
        ("segment", lambda rows, ids: tf.math.segment_sum(rows, tf.sort(ids)), ("float32", "float64")),
        ("unsorted-segment", lambda rows, ids: tf.math.unsorted_segment_sum(rows, ids, KEYS), ("float32", "float64")),
        ("unsorted-segment", gathered, ("float32",)),
        ("scatter-nd", lambda rows, ids: tf.scatter_nd(places(ids), rows, [KEYS, 3]), ("float32", "float64")),
        ("tensor-scatter-nd", lambda rows, ids: tf.tensor_scatter_nd_add(zeros(rows), places(ids), rows), ("float32",)),
        ("resource-scatter", into_variable, ("float32",)),
        ("bincount", lambda rows, ids: tf.stack([gen_math_ops.bincount(ids, KEYS, rows[:, i]) for i in range(3)], 1),
         ("float32", "float64")),
        ("sparse-dense-matmul", product, ("float32", "float64")),
    ]


def true_sums(rows, ids):
    """[KEYS, columns], correctly rounded to float64."""
    with np.errstate(all="ignore"):
        return np.array([[_sum(column) for column in rows[ids == key].astype("float64").T] for key in range(KEYS)])


def _sum(values):
    if np.isfinite(values).all():
        return math.fsum(values)
    return float(np.sum(values[~np.isfinite(values)]))


def bound(rows, ids):
    """What additions one by one may be wrong by, at most: half a place in the last for each."""
    eps = np.finfo(rows.dtype).eps
    tiny = np.finfo(rows.dtype).tiny  # TensorFlow's threads take smaller numbers for zero
    size = np.zeros((KEYS, rows.shape[1]))
    with np.errstate(all="ignore"):
        for key in range(KEYS):
            mine = np.abs(rows[ids == key].astype("float64"))
            size[key] = eps * mine.max(0) * 2 + eps * mine.sum(0) + tiny * (len(mine) + 1)
    return size


def in_order(rows, ids):
    """The control: added one by one, as they come."""
    total = np.zeros((KEYS, rows.shape[1]), rows.dtype)
    with np.errstate(all="ignore"):
        for row, key in zip(rows, ids):
            total[key] += row
    return total


def orders(rows, ids):
    yield rows, ids
    for _ in range(PERMUTATIONS):
        order = RANDOM.permutation(len(ids))
        yield rows[order], ids[order]


def by_blocks(rows, ids):
    """The same addends in orders that keep sorted ids sorted."""
    order = np.argsort(ids, kind="mergesort")
    for some, keys in orders(rows[order], ids[order]):
        again = np.argsort(keys, kind="mergesort")
        yield some[again], keys[again]


def keys_for(rows):
    ids = np.repeat(RANDOM.randint(0, KEYS - 1, len(rows) // 2), 2).astype("int32")  # what cancels has one key
    ids[2:4 * KEYS:4] = np.arange(KEYS)  # none without addends: segment_sum ends with the last
    return ids


def check(patch, call, rows, ids):
    """(faults, whether the control differed)."""
    session = Replacements()
    session.install(PATCHES[patch])
    try:
        with tf.Graph().as_default(), tf1.Session() as run:
            holders = [tf1.placeholder(rows.dtype, rows.shape), tf1.placeholder("int32", ids.shape)]
            result = call(*holders)
            found, control = [], set()
            for some, keys in (by_blocks if patch == "segment" else orders)(rows, ids):
                found.append(run.run(result, dict(zip(holders, (some, keys)))))
                control.add(in_order(some, keys).tobytes() if len(keys) < 10 ** 5 else b"")
    finally:
        session.restore()
    faults = []
    if len(set(one.tobytes() for one in found)) != 1:
        faults.append("%d results" % len(set(one.tobytes() for one in found)))
    with np.errstate(all="ignore"):
        wanted = true_sums(rows, ids)
        limit = np.finfo(rows.dtype).max
        finite = np.isfinite(wanted) & (np.abs(wanted) <= limit)
        got = found[0].astype("float64")
        wrong = np.abs(got - wanted) > bound(rows, ids)
    if (wrong & finite).any():
        faults.append("too far from the true sums: %s" % np.abs(got - wanted)[wrong & finite][:3])
    if (np.isnan(got) != np.isnan(wanted)).any() or (got[np.isinf(wanted)] != wanted[np.isinf(wanted)]).any():
        faults.append("other places of NaN or infinity")
    return faults, len(control) > 1


def main():
    found = [check_all(ops(), lambda name: True)]
    for narrow in (4, 1):  # in pieces; and these in place
        chunked.CHUNK_ELEMENTS, exact_sum.MIN_WIDTH_IN_PLACE = 512, narrow
        found.append(check_all(ops(), ("vanishing", "special").__contains__))
    faults, compared, control = [fault for one in found for fault in one[0]], sum(one[1] for one in found), found[0][2]
    rows = RANDOM.uniform(0.5, 1, (MANY, 1)).astype("float32")
    faults += check("unsorted-segment", lambda rows, ids: tf.math.unsorted_segment_sum(rows, ids, KEYS), rows,
                    keys_for(rows))[0]
    print(json.dumps({"faults": faults, "compared": compared, "control": control}))


def check_all(forms, wanted):
    """(faults, number of comparisons, kind of addends -> whether the control differed); wanted(kind): which kinds."""
    faults, compared, control = [], 0, {}
    for patch, call, kinds in forms:
        if not PATCHES[patch].applies(VERSION):
            continue
        for kind in kinds:
            for name, rows in addends(kind).items():
                if not wanted(name):
                    continue
                found, differed = check(patch, call, rows.astype(kind), keys_for(rows))
                faults += ["%s %s, %s: %s" % (patch, kind, name, fault) for fault in found]
                compared += 1
                control[name] = control.get(name, False) or differed
    return faults, compared, control


if __name__ == "__main__":
    main()
