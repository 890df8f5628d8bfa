"""Inside a real TensorFlow: is every replaced op the same mathematics as the original?

    python math_checks.py        one JSON line for each case: {"case", "patch", "compared": modes, "faults": [...]}

Each case calls a public function, with the original op and with the patched one, eagerly and in graphs of known,
partly known and unknown shapes; outputs, gradients and gradients of gradients have to agree within rounding.
"""

import collections
import json
import os
import sys
import traceback
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

tf1 = getattr(tf.compat, "v1", tf)
tf1.enable_eager_execution()
tf1.logging.set_verbosity("ERROR")
VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])

from tfdeterminism.patches import PATCHES, Replacements  # noqa: E402

# The rounding error of each dtype.
EPS = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1.2e-7, "float64": 2.3e-16, "complex64": 1.2e-7,
       "complex128": 2.3e-16}


class Case:
    """One call.  build(*tensors) uses public functions; wrt: inputs to differentiate.

    second: whether the original op has a second derivative.  terms: how many numbers are added up at most (for the
    tolerance).  modes: eager, or in a graph that knows the shape (static), the number of dimensions (dims), nothing
    (rank).  eps: the type whose rounding counts, where it is not the widest one's.
    expected(*arrays in float64): an independent NumPy computation of the first output.
    """

    def __init__(self, name, patch, build, inputs, wrt=(), second=False, terms=10, expected=None,
                 modes=("eager",), eps=""):
        self.name, self.patch, self.build, self.inputs = name, patch, build, inputs
        self.wrt, self.second, self.terms, self.expected = list(wrt), second, terms, expected
        self.modes, self.eps = list(modes), eps

    def original_results(self):
        """Return ({mode: results of the original op}, faults)."""
        values = {}
        for mode in self.modes:
            try:
                values[mode] = self.results(mode)
            except Exception:
                if mode not in ("rank", "dims") and VERSION >= (1, 14):  # 1.13 lacks some ops
                    return {}, ["%s: the original fails: %s" % (mode, traceback.format_exc()[-1500:])]
        return values, []

    def faults(self, original_results):
        """Return how the results of the installed replaced op differ from the original's."""
        faults = []
        for mode, expected in original_results.items():
            try:
                faults += ["%s: %s" % (mode, fault) for fault in self.compare(expected, self.results(mode))]
            except Exception:
                faults.append("%s: the replaced op fails: %s" % (mode, traceback.format_exc()[-1500:]))
        return faults

    def results(self, mode):
        """Return outputs, gradients and second gradients, computed by the ops that are installed now."""
        return (_eager if mode == "eager" else _graph)(self, mode)

    def compare(self, expected, actual):
        faults = []
        if len(expected) != len(actual):
            return ["%d results instead of %d" % (len(actual), len(expected))]
        for number, (old, new) in enumerate(zip(expected, actual)):
            faults += ["result %d: %s" % (number, fault) for fault in self.differences(old, new)]
        if self.expected is not None:
            exact = self.expected(*[_to_float64(array) for array in self.inputs])
            exact = exact.astype(actual[0].dtype)
            faults += ["against NumPy: " + fault for fault in self.differences(exact, actual[0])]
        return faults

    def differences(self, old, new):
        """Return how the new array differs from the old one by more than rounding."""
        if old.shape != new.shape or old.dtype != new.dtype:
            return ["%s %s instead of %s %s" % (new.dtype, new.shape, old.dtype, old.shape)]
        types = [str(array.dtype) for array in self.inputs] + [str(old.dtype), self.eps]
        eps = max(EPS.get(name, 0) for name in types)
        old, new = _to_float64(old), _to_float64(new)
        if not np.array_equal(np.isnan(old), np.isnan(new)) or not np.array_equal(np.isinf(old), np.isinf(new)):
            return ["NaN or infinity at other elements"]
        old, new = old[np.isfinite(old)], new[np.isfinite(new)]
        scale = max(1.0, np.abs(old).max()) if old.size else 1.0
        bound = 8 * eps * self.terms * scale
        worst = np.abs(old - new).max() if old.size else 0.0
        return [] if worst <= bound else ["differs by %.3g, allowed is %.3g" % (worst, bound)]


def _to_float64(array):
    array = np.asarray(array)
    return array.astype("complex128" if array.dtype.kind == "c" else "float64")


def _flat(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _numpy(value):
    return np.asarray(tf.convert_to_tensor(value).numpy())


def _upstream(shape, dtype, seed):
    """Return the random gradient that comes from above."""
    values = np.random.RandomState(seed).uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * np.random.RandomState(seed + 1).uniform(-1, 1, shape)
    return values.astype(dtype)


def _eager(case, mode):
    """Return outputs, gradients and second gradients, computed eagerly."""
    inputs = [tf.constant(array) for array in case.inputs]
    watched = [inputs[i] for i in case.wrt]
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(watched)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(watched)
            outputs = _flat(case.build(*inputs))
        results = list(outputs)
        if watched:
            ups = [_upstream(y.shape.as_list(), y.dtype.as_numpy_dtype, 5) for y in outputs[:1]]
            grads = inner.gradient(outputs[:1], watched, output_gradients=[tf.constant(up) for up in ups])
            grads = [tf.convert_to_tensor(grad) for grad in grads if grad is not None]
            results += grads
            square = [tf.reduce_sum(grad * grad) for grad in grads]
            total = sum(square[1:], square[0]) if square and case.second else None
    if watched and total is not None:
        results += [tf.convert_to_tensor(grad) for grad in outer.gradient(total, watched) if grad is not None]
    return [_numpy(result) for result in results]


def _graph(case, mode):
    """Return outputs, gradients and second gradients, computed in a graph of placeholders."""
    with tf.Graph().as_default(), tf1.Session() as session:
        inputs = [_placeholder(array, mode) for array in case.inputs]
        feed = dict(zip(inputs, case.inputs))
        outputs = _flat(case.build(*inputs))
        if mode == "static":
            _check_static(outputs, session.run(outputs, feed))
        values = session.run(outputs, feed)
        results = list(values)
        watched = [inputs[i] for i in case.wrt]
        if watched:
            up = tf.constant(_upstream(values[0].shape, values[0].dtype, 5))
            grads = [g for g in tf1.gradients(outputs[:1], watched, grad_ys=[up]) if g is not None]
            grads = [tf.convert_to_tensor(grad) for grad in grads]
            results += session.run(grads, feed)
            if case.second:
                total = tf.add_n([tf.reduce_sum(grad * grad) for grad in grads])
                second_order = [g for g in tf1.gradients(total, watched) if g is not None]
                results += session.run([tf.convert_to_tensor(grad) for grad in second_order], feed)
        return results


def _check_static(outputs, values):
    for output, value in zip(outputs, values):
        assert output.shape.is_compatible_with(value.shape), (output.shape, value.shape)


def _placeholder(array, mode):
    array = np.asarray(array)
    shape = {"static": list(array.shape), "dims": [None] * array.ndim, "rank": None}[mode]
    if array.ndim == 0 and mode != "static":
        shape = []
    return tf1.placeholder(array.dtype, shape)


def main():
    from cases_checks import cases
    chosen = sys.argv[1:]
    warnings.simplefilter("ignore")
    by_patch = collections.OrderedDict((key, []) for key, patch in PATCHES.items() if patch.applies(VERSION))
    for case in cases(tf, tf1, Case, VERSION):
        if case.patch in by_patch and (not chosen or any(word in case.name for word in chosen)):
            by_patch[case.patch].append(case)
    for key, cases_of_patch in by_patch.items():
        for case, original_results, faults in compared(key, cases_of_patch):
            print(json.dumps({"case": case.name, "patch": key, "faults": faults, "compared": len(original_results)}))
        sys.stdout.flush()


def compared(key, cases):
    """Return [(case, the originals' results, faults)]; install the patches once, as finding an op's names is slow."""
    case_values = [(case,) + case.original_results() for case in cases]
    replaced = Replacements()
    replaced.install(PATCHES[key])
    try:
        return [(case, originals, faults or case.faults(originals)) for case, originals, faults in case_values]
    finally:
        replaced.restore()


if __name__ == "__main__":
    main()
