"""Traces of no program: for tests and benchmarks of what reads traces."""

import numpy

from . import format as trace_format


def write(path, steps=10, ops=50, differs=(), seed=0):
    """A chain of `ops` ops, each fed by the one before, `steps` times.

    differs: (step, op number) pairs; from there on every op's digest depends on `seed`.
    """
    writer = trace_format.Writer(path, {"tensorflow": "2.21.0", "python": "3.12.0", "numpy": numpy.__version__,
                                        "argv": ["train.py"], "cwd": "/", "level": "ops", "steps": None, "pid": 1,
                                        "rank": "0", "started": 0.0, "devices": ["CPU:0"], "xla": "switched off",
                                        "environment": {}, "probe": "synthetic"})
    writer.define([trace_format.definition(number, "MatMul", "op{}".format(number), function="train_step",
                                           dtype="float32", shape=[2, 2], file="train.py", line=10 + number,
                                           stack=[["train.py", 10 + number, "main"]],
                                           inputs=[number - 1] if number else []) for number in range(ops)])
    base = numpy.arange(ops, dtype="<u8") * numpy.uint64(0x9e3779b97f4a7c15)
    spoiled = numpy.zeros(ops, bool)
    for step in range(steps):
        block = numpy.zeros(ops, trace_format.EVENT)
        block["digest"] = base + numpy.uint64(step + 1)
        block["key"] = numpy.arange(ops)
        block["step"] = step
        block["occurrence"] = step
        for first in (number for at, number in differs if at == step):
            spoiled[first:] = True
        block["digest"][spoiled] ^= numpy.uint64(seed)
        spoiled[:] = spoiled.any()  # the next step starts from what this one left
        writer.events(block)
    writer.end(clean=True, exit=0, weights="0" * 16, variables={}, steps=steps, error=None)
    writer.close()
