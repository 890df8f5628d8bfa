"""Generated traces, for tests and benchmarks of the code that reads traces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from tfdeterminism.trace.schema.format import RECORD_DTYPE, definition
from tfdeterminism.trace.schema.writer import Writer

HEADER = {
    "framework": "tensorflow",
    "version": "2.21.0",
    "python": "3.12.0",
    "numpy": numpy.__version__,
    "argv": ["train.py"],
    "cwd": "/",
    "level": "ops",
    "steps": None,
    "pid": 1,
    "rank": "0",
    "started": 0.0,
    "devices": ["CPU:0"],
    "xla": "switched off",
    "environment": {},
    "digest": "synthetic",
}


def write_trace(
    path: str, steps: int = 10, ops: int = 50, differs: Sequence[tuple[int, int]] = (), seed: int = 0
) -> None:
    """A chain of `ops` ops, each fed by the one before, `steps` times.

    differs: (step, op number) pairs; from there on every op's digest depends on `seed`.
    """
    writer = Writer(path, HEADER)
    writer.define([_op(number) for number in range(ops)])
    base = numpy.arange(ops, dtype="<u8") * numpy.uint64(0x9E3779B97F4A7C15)
    spoiled = numpy.zeros(ops, bool)
    for step in range(steps):
        block = numpy.zeros(ops, RECORD_DTYPE)
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


def _op(number: int) -> dict[str, object]:
    line = 10 + number
    return definition(
        number, "MatMul", f"op{number}", function="train_step", dtype="float32", shape=[2, 2], file="train.py",
        line=line, stack=[["train.py", line, "main"]], inputs=[number - 1] if number else [],
    )  # fmt: skip
