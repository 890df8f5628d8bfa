"""What one patched op and its original take: each measurement is a forked process, so that its peak is its own.

Timed are the very outputs that the patch replaces, fetched as a program would: TensorFlow leaves out an op whose output
nobody asks for.  That both really computed is shown by the profile of a run, which has to hold the original op, or must
not, and by their results, which have to agree.
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
    """One call of what a patch replaces.

    op: the type of the original op.  inputs(small): the arrays it is called with, as they are in a training or as
    small as can be.  call(*tensors): the outputs.  eager: whether call works eagerly too.  kept: whether the patched
    form ends in the same op, on what it has made of its inputs.
    """

    def __init__(self, patch, op, size, inputs, call, eager=True, kept=False):
        self.patch, self.op, self.size, self.inputs, self.call = patch, op, size, inputs, call
        self.eager, self.kept = eager, kept

    def line(self, repeats):
        """What was measured, as JSON knows it; an AssertionError where it proves nothing."""
        arrays = self.inputs(False)  # made before: their making is not measured
        original = forked(_graph, self, None, arrays, repeats)
        patched = forked(_graph, self, PATCHES[self.patch], arrays, repeats)
        self.compare(original, patched)
        small = [
            forked(_eager, self, patch) if self.eager and VERSION >= (2, 0) else None
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
            # Not all of them: the original gradient of crops loses some, since its threads race.
            differ = (np.abs(old - new) > 1e-3 * np.abs(old).max()).mean()
            assert differ < 0.01, f"{self.size}: {differ:.1%} of the results differ"


def forked(measure, *arguments):
    """measure(*arguments) in a process of its own."""
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


def _graph(case, patch, arrays, repeats):
    """Median seconds and peak MiB of a session's runs (with inputs and outputs); what ran; a sample of results."""
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
        traced = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
        session.run(
            outputs, {holders[i]: array for i, array in enumerate(arrays)}, options=traced, run_metadata=profile
        )
        return {
            "seconds": sorted(times)[len(times) // 2],
            "mib": (peak - before) / 1024.0,
            "ran": _ran(graph, profile),
            "results": [_sample(result) for result in results],
        }


def _ran(graph, profile):
    """The op types that a run executed; but for exact sums, whose additions are no longer order-dependent."""
    labels = [
        stats.timeline_label + " " + stats.node_name
        for device in profile.step_stats.dev_stats
        for stats in device.node_stats
    ]
    named = {op.name: op.type for op in graph.get_operations()}
    found = set()
    for label in labels:
        if "ExactSum" not in label:
            found.update([label.partition(" = ")[2].partition("(")[0], named.get(label.rpartition(" ")[2], "")])
    return sorted(found - {""})


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _sample(result):
    flat = np.asarray(result, "float64").reshape(-1)
    return flat[:: max(1, flat.size // 1000)].tolist()


def _flat(result):
    return [output for output in result if output is not None] if isinstance(result, (list, tuple)) else [result]


def _eager(case, patch):
    """Median seconds of one small eager call."""
    if patch is not None:
        Replacements().install(patch)
    tensors = [tf.constant(array) for array in case.inputs(True)]
    times = []
    for _ in range(SMALL_CALLS):
        start = time.perf_counter()
        case.call(*tensors)
        times.append(time.perf_counter() - start)
    return sorted(times)[SMALL_CALLS // 2]
