"""Any shapes, any indices: the patched ops against TensorFlow's and NumPy's, the calls made up by hypothesis."""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inside import HERE, environment

from tfdet.base.paths import Project
from tfdeterminism.patches import PATCHES

ENVIRONMENTS = ("tf1.14", "tf2.0", "tf2.21")
FLOATS = ("float32", "float64", "float16", "bfloat16")
ALL = (*FLOATS, "complex64", "complex128")
Call = dict[str, Any]


def seldom(draw: st.DrawFn) -> bool:
    return draw(st.sampled_from([False] * 5 + [True]))


def shape(draw: st.DrawFn, low: int, high: int, smallest: int = 0) -> list[int]:
    return draw(st.lists(st.integers(smallest, 4), min_size=low, max_size=high))


def picked(draw: st.DrawFn, many: int, size: int, worst: int = -1) -> list[int]:
    """Indices below size, often the same; seldom one that is out of range.  No size: all are."""
    inside = st.integers(0, size - 1) if size else st.just(0)
    found = draw(st.lists(inside, min_size=many, max_size=many))
    if found and seldom(draw):
        found[draw(st.integers(0, many - 1))] = draw(st.sampled_from([worst, size, size + 3]))
    return found


def common(draw: st.DrawFn, dtypes: tuple[str, ...]) -> Call:
    return {
        "dtype": draw(st.sampled_from(dtypes)),
        "kind": draw(st.sampled_from(["int32", "int64"])),
        "seed": draw(st.integers(0, 999)),
    }


@st.composite
def segment(draw: st.DrawFn) -> Call:
    ids = draw(st.lists(st.integers(0, 6), max_size=40))
    if not seldom(draw):
        ids.sort()
    name = draw(st.sampled_from(["segment_sum", "segment_prod"]))
    return {**common(draw, ALL), "name": name, "ids": ids, "inner": shape(draw, 0, 2)}


@st.composite
def unsorted_segment(draw: st.DrawFn) -> Call:
    name = draw(st.sampled_from(["sum", "prod", "mean", "sqrt_n"]))
    outer, count = draw(st.lists(st.integers(0, 9), max_size=2)), draw(st.integers(0, 6))
    return {
        **common(draw, ALL if name in ("sum", "prod") else FLOATS),
        "name": "unsorted_segment_" + name,
        "ids": picked(draw, math.prod(outer), count) if count else [-1] * math.prod(outer),
        "ids_shape": outer,
        "inner": shape(draw, 0, 2),
        "count": count,
    }


@st.composite
def tuples(draw: st.DrawFn, *names: str) -> Call:
    target = shape(draw, 1, 3, 1)
    outer, depth = draw(st.lists(st.integers(0, 8), min_size=1, max_size=2)), draw(st.integers(1, len(target)))
    columns = [picked(draw, math.prod(outer), size) for size in target[:depth]]
    return {
        **common(draw, ALL),
        "name": draw(st.sampled_from(names)),
        "shape": target,
        "ids": [number for row in zip(*columns, strict=True) for number in row],
        "ids_shape": [*outer, depth],
    }


@st.composite
def into_rows(draw: st.DrawFn) -> Call:
    target, outer = shape(draw, 1, 3, 1), draw(st.lists(st.integers(0, 8), max_size=2))
    return {
        **common(draw, ALL),
        "name": draw(st.sampled_from(["add", "sub", "mul", "div", "update"])),
        "shape": target,
        "scalar": seldom(draw),
        "ids": picked(draw, math.prod(outer), target[0]),
        "ids_shape": outer,
    }


@st.composite
def gather(draw: st.DrawFn) -> Call:
    params, outer = shape(draw, 1, 3, 1), draw(st.lists(st.integers(0, 8), max_size=2))
    axis = draw(st.integers(0, len(params) - 1))
    ids = draw(st.lists(st.integers(0, params[axis] - 1), min_size=math.prod(outer), max_size=math.prod(outer)))
    return {**common(draw, ALL), "shape": params, "axis": axis, "ids": ids, "ids_shape": outer}


@st.composite
def bincount(draw: st.DrawFn) -> Call:
    outer, count = draw(st.lists(st.integers(0, 12), min_size=1, max_size=2)), draw(st.integers(0, 9))
    return {
        **common(draw, ("float32", "float64")),
        "kind": "int32",
        "ids": picked(draw, math.prod(outer), count),
        "ids_shape": outer,
        "count": count,
    }


@st.composite
def crop(draw: st.DrawFn) -> Call:
    batch, many, edge = draw(st.integers(1, 3)), draw(st.integers(0, 5)), st.integers(1, 6)
    image, size = [batch, draw(edge), draw(edge), draw(st.integers(1, 3))], [draw(edge), draw(edge)]
    # Coordinates on the image's grid and on none, outside too.
    coordinate = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(-0.5, 1.5, width=32))
    return {
        **common(draw, ("float32", "float64")),  # float16 makes TensorFlow 2.0 abort
        "kind": "int32",
        "name": draw(st.sampled_from(["bilinear", "nearest", "boxes"])),
        "shape": image,
        "size": size,
        "boxes": [[draw(coordinate) for _ in range(4)] for _ in range(many)],
        "ids": picked(draw, many, batch),
    }


@st.composite
def resize(draw: st.DrawFn, name: str) -> Call:
    edge = st.integers(1, 12)
    return {
        **common(draw, FLOATS[:3]),
        "name": name,
        "mode": draw(st.sampled_from(["plain", "align_corners", "half_pixel"])),
        "shape": [draw(st.integers(0, 2)), draw(edge), draw(edge), draw(st.integers(1, 3))],
        "size": [draw(edge), draw(edge)],
    }


# (the family in properties_checks.py, the patch, its calls)
FAMILIES: list[tuple[str, str, st.SearchStrategy[Call]]] = [
    ("segment", "segment", segment()),
    ("unsorted_segment", "unsorted-segment", unsorted_segment()),
    ("gather", "unsorted-segment", gather()),
    ("scatter_nd", "scatter-nd", tuples("")),
    ("tensor_scatter", "tensor-scatter-nd", tuples("add", "sub", "update")),
    ("into_rows", "resource-scatter", into_rows()),
    ("into_tuples", "scatter-nd-variable", tuples("add", "sub", "update")),
    ("bincount", "bincount", bincount()),
    ("crop", "crop-and-resize", crop()),
    ("resize", "resize-bilinear", resize("bilinear")),
    ("resize", "resize-nearest", resize("nearest")),
]


def asked_for() -> list[Any]:
    """Every family in every version that needs its patch."""
    return [
        pytest.param(key, family, calls, id=f"{key}-{family}-{patch}")
        for key in ENVIRONMENTS
        for family, patch, calls in FAMILIES
        if PATCHES[patch].applies(tuple(int(part) for part in key[2:].split(".")))
    ]


class Answers:
    """One process for each TensorFlow, which answers line by line."""

    def __init__(self, checkout: Project, tf_python: Callable[[str], Path], errors: IO[str]) -> None:
        self._checkout, self._python = checkout, tf_python
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._errors = errors

    def ask(self, key: str, call: Call) -> list[str]:
        if key not in self._processes:
            self._processes[key] = self._start(self._python(key))
        process = self._processes[key]
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(call) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            del self._processes[key]
            self._errors.seek(0)
            return [f"the process ended with {process.wait()}: {self._errors.read()[-2000:]}"]
        return list(json.loads(line)["faults"])

    def _start(self, python: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [python, HERE / "properties_checks.py"],
            env=environment(self._checkout),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def close(self) -> None:
        for process in self._processes.values():
            process.communicate()


@pytest.fixture(scope="module")
def answers(checkout: Project, tf_python: Callable[[str], Path]) -> Iterator[Answers]:
    with tempfile.TemporaryFile("w+") as errors:
        made = Answers(checkout, tf_python, errors)
        yield made
        made.close()


@pytest.mark.tensorflow
@pytest.mark.parametrize(("key", "family", "calls"), asked_for())
def test_any_call(answers: Answers, key: str, family: str, calls: st.SearchStrategy[Call]) -> None:
    @settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(calls)
    def check(call: Call) -> None:
        assert answers.ask(key, {"family": family, **call}) == []

    check()
