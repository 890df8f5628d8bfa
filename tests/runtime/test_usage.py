"""Help and usage errors of the modules need no installed package; seeds may be integers of any type."""

from __future__ import annotations

import subprocess
import sys

import numpy
import pytest

from tfdet.base.paths import Project
from tfdeterminism.seeds import check_seed

TRACE = "tfdeterminism.trace"


def run_without_packages(checkout: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module in a Python without packages."""
    command = [sys.executable, "-S", "-m", *arguments]
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(checkout.runtime), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("command", ["", "run", "diff", "locate", "replay"])
def test_help_needs_no_package(checkout: Project, command: str) -> None:
    done = run_without_packages(checkout, TRACE, *command.split(), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: python -m {TRACE} {command}")


def test_the_probe_helps_without_a_package(checkout: Project) -> None:
    assert run_without_packages(checkout, "tfdet_probe", "--help").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([TRACE], 2, "usage:"),
        ([TRACE, "walk"], 2, "usage:"),
        ([TRACE, "run"], 2, "required: --out, program"),
        ([TRACE, "run", "--out", "x", "--level", "all", "--", "train.py"], 2, "invalid choice"),
        ([TRACE, "run", "--out", "x", "--steps", "5:2", "--", "train.py"], 2, "holds no step"),
        ([TRACE, "run", "--out", "x", "--", "train.py"], 2, "no NumPy"),
        ([TRACE, "diff"], 2, "required: trace"),
        ([TRACE, "diff", "a", "b"], 2, "no NumPy"),
        ([TRACE, "locate", "--max-runs", "1", "--", "train.py"], 2, "two at least"),
        ([TRACE, "locate", "--", "train.py"], 2, "no NumPy"),
        ([TRACE, "replay", "--repeats", "x"], 2, "invalid int"),
        ([TRACE, "replay", "capture-1.npz"], 2, "no NumPy"),
        (["tfdet_probe", "--device", "tpu"], 2, "invalid choice"),
    ],
)
def test_wrong_usage_is_reported_without_a_package(
    checkout: Project, arguments: list[str], code: int, message: str
) -> None:
    done = run_without_packages(checkout, *arguments)
    assert (done.returncode, message in done.stderr, "Traceback" in done.stderr) == (code, True, False), done.stderr


@pytest.mark.parametrize("kind", [int, *(getattr(numpy, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 64))])
def test_a_seed_may_be_any_integer_type(kind: type) -> None:
    seed = check_seed(kind(3))
    assert (seed, type(seed)) == (3, int)


@pytest.mark.parametrize(
    ("seed", "error"),
    [
        (True, TypeError), (numpy.True_, TypeError), (1.0, TypeError), (numpy.float32(1), TypeError),
        ("1", TypeError), (None, TypeError), (numpy.array([1]), TypeError), (-1, ValueError),
        (numpy.int64(-1), ValueError), (2**32, ValueError), (numpy.uint64(2**32), ValueError),
    ],
)  # fmt: skip
def test_an_invalid_seed_is_refused(seed: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="a seed is"):
        check_seed(seed)
