"""Each exit code has one meaning in all commands."""

from __future__ import annotations

import re

import pytest

from tfdet.base.errors import EXIT_CODES, ExitCode
from tfdet.base.paths import Project
from tfdeterminism.trace import errors as trace

# {a constant of the trace: tfdet's exit code of the same number}; EXIT_NO_DEVICE: nothing ran on the virtual GPU.
TRACE_CODES = {
    "EXIT_SAME": ExitCode.OK,
    "EXIT_DIFFERS": ExitCode.CONTRADICTED,
    "EXIT_USAGE": ExitCode.USAGE,
    "EXIT_FAILED": ExitCode.RUN_FAILED,
    "EXIT_NO_DEVICE": ExitCode.NO_DEVICE,
    "EXIT_FIXED": ExitCode.FIXED,
    "EXIT_NOTHING_RECORDED": ExitCode.NOTHING_RECORDED,
    "EXIT_INCOMPLETE": ExitCode.TRACE_INCOMPLETE,
    "EXIT_INTERRUPTED": ExitCode.INTERRUPTED,
}
# Where the runtime's Python has an exit code: a call that exits, an error that carries the code, a constant.
EXIT_PATTERN = re.compile(
    r"(?:sys\.exit|os\._exit|_complain|BundleError)\((\d+)|missing\([^,]+, (\d+)|^[A-Z_]+ = (\d+)  # exit code"
)


def test_every_code_has_its_meaning(checkout: Project) -> None:
    assert list(EXIT_CODES) == list(ExitCode)
    page = (checkout.root / "docs" / "reference" / "exit-codes.md").read_text("utf-8")
    assert re.findall(r"^\| (\d+) \| `(\w+)` \|", page, re.M) == [(str(code.value), code.name) for code in ExitCode]


def test_the_trace_has_the_same_numbers() -> None:
    assert {name: getattr(trace, name) for name in TRACE_CODES} == TRACE_CODES
    numbers = {name: value for name, value in vars(trace).items() if name.isupper() and isinstance(value, int)}
    assert numbers == TRACE_CODES, "a new code needs a row of the table"


@pytest.mark.parametrize("folder", ["tfdet_probe", "tfdeterminism", "unbundle"])
def test_the_runtime_ends_with_no_other_number(checkout: Project, folder: str) -> None:
    numbers = {
        int(next(filter(None, match.groups())))
        for path in (checkout.runtime / folder).rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        for match in EXIT_PATTERN.finditer(line)
    }
    assert folder == "tfdeterminism" or numbers, "the pattern finds none"
    assert numbers <= set(ExitCode)
