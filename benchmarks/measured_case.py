"""Measure time and memory of one replaced op and its original, each in a forked process with its own memory peak.

The measured outputs are those that the patch replaces, fetched as a program would: TensorFlow does not execute an op
whose output is not used.  The profile of a run must contain the original op, or must not, and the results must agree.
"""

import json
import os
import resource
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

from tfdeterminism.patches import PATCHES, Replacements

tf1 = getattr(tf.compat, "v1", tf)
VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
SMALL_CALLS = 200  # eager calls are short: the median of that many


class Case:
    """One call of an op that a patch of tfdeterminism replaces.

    op: the type of the original op.  inputs(small): its arguments as arrays, of sizes as in a training, or minimal.
    call(*tensors): returns the outputs.  eager: whether call also works eagerly.  kept: whether the patched form still
    executes the op, on changed inputs.
    """

    def __init__(self, patch, op, size, inputs, call, eager=True, kept=False):
        self.patch, self.op, self.size, self.inputs, self.call = patch, op, size, inputs, call
        self.eager, self.kept = eager, kept

    def line(self, repeats):
        """Return the measurements as a JSON object; raise AssertionError if the runs are not comparable."""
        arrays = self.inputs(False)  # created before the measurement
        original = run_forked(_measure_session, self, None, arrays, repeats)
        patched = run_forked(_measure_session, self, PATCHES[self.patch], arrays, repeats)
        self.compare(original, patched)
        small = [
            run_forked(_measure_eager_call, self, patch) if self.eager and VERSION >= (2, 0) else None
            for patch in (None, PATCHES[self.patch])
        ]
        return {
            "patch": self.patch,
            "size": self.size,
            "repeats": repeats,
            "tensorflow": tf.__version__,
            "original_seconds": original["seconds"],
            "seconds": patched["seconds"],
            "original_mib": original["mib"],
            "mib": patched["mib"],
            "original_eager_seconds": small[0],
            "eager_seconds": small[1],
        }

    def compare(self, original, patched):
        assert self.op in original["ran"], self.size + ": the profile holds no " + self.op
        assert self.kept == (self.op in patched["ran"]), self.size + ": not what the patched run should run: " + self.op
        assert len(original["results"]) == len(patched["results"])
        for old, new in zip(original["results"], patched["results"]):  # noqa: B905 (Python 3.7 has to read it)
            old, new = np.array(old), np.array(new)
            assert old.shape == new.shape, self.size + ": the results have other shapes"
            # Some may differ: the original gradient of crops loses updates, as its threads race.
            differ = (np.abs(old - new) > 1e-3 * np.abs(old).max()).mean()
            assert differ < 0.01, f"{self.size}: {differ:.1%} of the results differ"


def run_forked(measure, *arguments):
    """Return the result of measure(*arguments) in a forked process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            with os.fdopen(write, "wb") as pipe:
                pipe.write(json.dumps(measure(*arguments)).encode())
        except BaseException:
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read()
    assert os.waitpid(child, 0)[1] == 0 and text, "the measuring process died"
    return json.loads(text.decode())


def _measure_session(case, patch, arrays, repeats):
    """Return median seconds and peak MiB (with inputs and outputs) of a session's runs, the op types, some results."""
    if patch is not None:
        Replacements().install(patch)
    with tf.Graph().as_default() as graph, tf1.Session() as session:
        holders = [tf1.placeholder(array.dtype, array.shape) for array in arrays]
        outputs = [tf.convert_to_tensor(output) for output in _flat(case.call(*holders))]
        session.run(tf1.global_variables_initializer())
        before = _peak()
        run = session.make_callable(outputs, holders)
        run(*arrays)
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            results = run(*arrays)
            times.append(time.perf_counter() - start)
        peak = _peak()
        profile = tf1.RunMetadata()
        options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
        session.run(
            outputs, {holders[i]: array for i, array in enumerate(arrays)}, options=options, run_metadata=profile
        )
        return {
            "seconds": sorted(times)[len(times) // 2],
            "mib": (peak - before) / 1024.0,
            "ran": _executed_op_types(graph, profile),
            "results": [_sample(result) for result in results],
        }


def _executed_op_types(graph, profile):
    """Return the op types that a run executed, without those of exact sums, whose additions do not depend on order."""
    labels = [
        stats.timeline_label + " " + stats.node_name
        for device in profile.step_stats.dev_stats
        for stats in device.node_stats
    ]
    types_by_name = {op.name: op.type for op in graph.get_operations()}
    op_types = set()
    for label in labels:
        if "ExactSum" not in label:
            op_types.update(
                [label.partition(" = ")[2].partition("(")[0], types_by_name.get(label.rpartition(" ")[2], "")]
            )
    return sorted(op_types - {""})


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _sample(result):
    flat = np.asarray(result, "float64").reshape(-1)
    return flat[:: max(1, flat.size // 1000)].tolist()


def _flat(result):
    return [output for output in result if output is not None] if isinstance(result, (list, tuple)) else [result]


def _measure_eager_call(case, patch):
    """Return the median seconds of a small eager call."""
    if patch is not None:
        Replacements().install(patch)
    tensors = [tf.constant(array) for array in case.inputs(True)]
    times = []
    for _ in range(SMALL_CALLS):
        start = time.perf_counter()
        case.call(*tensors)
        times.append(time.perf_counter() - start)
    return sorted(times)[SMALL_CALLS // 2]
