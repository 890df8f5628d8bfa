"""`tfdet check` reports a read of uninitialized memory as an error, and accepts PyTorch's usual ways to fill it."""

from __future__ import annotations

from pathlib import Path

import pytest
from program_checks import parsed_program

from tfdet.verdicts.program_check import InstalledBuild, check_program
from tfdet.verdicts.reachable_sources import SourceIndex
from tfdet.verdicts.status import Status

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.init as init\nfrom torch.nn.parameter import Parameter\n"
EMPTY = {"torch-empty", "torch-empty-like", "torch-empty-strided"}
MODULE = """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = {made}
        self.reset_parameters()

    def reset_parameters(self):
        {reset}

    def forward(self, x):
        return x @ self.weight
"""


@pytest.fixture(scope="module")
def empty_sources(status: Status) -> SourceIndex:
    """Return the index by which calls of PyTorch are matched with sources of uninitialized memory."""
    naming = status.matrix.frameworks["torch"].naming
    assert naming
    return SourceIndex(
        naming, {key: source for key, source in status.matrix.for_framework("torch").sources.items() if key in EMPTY}
    )


def reached_allocations(empty_sources: SourceIndex, folder: Path, lines: str) -> set[str]:
    """Return "sure" where an allocation is reached, "may" where it may be reached."""
    return {
        "may" if match.open_condition else "sure"
        for match in empty_sources.match_program(parsed_program(folder, HEAD + lines))
    }


@pytest.mark.parametrize("maker", ["torch.empty(3)", "torch.empty_like(y)", "torch.empty_strided((3,), (1,))"])
@pytest.mark.parametrize(
    "lines",
    [
        "x = {}.normal_()", "x = {}\nx.fill_(1.0)\ny = x + 1", "nn.init.xavier_uniform_({})",
        "x = nn.Parameter({})\ninit.zeros_(x)", "x = {}\ntorch.add(y, y, out=x)\nprint(x)",
        "torch.mul(y, y, out={})", "x = {}\nx[:] = y\nx.sum()", "x = {}\nx[...] = y\nx.sum()",
        "x = {}.to('cpu').requires_grad_()\nprint(x.shape)\nx.data.uniform_(-1, 1)\nx.sum()",
        "x = torch.zeros_like({})", "n = {}.numel()", "with torch.no_grad():\n  x = {}\n  x.copy_(y)\nx.sum()",
        "def f():\n  x = {}\n  init.normal_(x)\n  return x * 2",
    ],
)  # fmt: skip
def test_memory_that_is_written_first_is_not_reported(
    empty_sources: SourceIndex, tmp_path: Path, lines: str, maker: str
) -> None:
    assert reached_allocations(empty_sources, tmp_path, "y = torch.ones(3)\n" + lines.format(maker)) == set()


@pytest.mark.parametrize(
    "reset",
    ["init.kaiming_uniform_(self.weight, a=5 ** 0.5)", "self.weight.data.normal_(0, 0.02)",
     "with torch.no_grad():\n            self.weight.copy_(torch.eye(3))",
     "for p in self.parameters():\n            init.uniform_(p, -1, 1)",
     "for p in self.parameters():\n            p.data.uniform_(-1, 1)"],
)  # fmt: skip
@pytest.mark.parametrize(
    "allocation", ["Parameter(torch.empty(3, 3))", "nn.Parameter(torch.empty((3, 3), device='cpu'))"]
)
def test_parameters_that_a_module_resets_are_not_reported(
    empty_sources: SourceIndex, tmp_path: Path, allocation: str, reset: str
) -> None:
    assert reached_allocations(empty_sources, tmp_path, MODULE.format(made=allocation, reset=reset)) == set()


def test_a_registered_buffer_is_followed(empty_sources: SourceIndex, tmp_path: Path) -> None:
    text = "class L(nn.Module):\n  def __init__(self):\n    self.register_buffer('b', torch.empty(3))\n"
    assert reached_allocations(empty_sources, tmp_path, text) == {"may"}
    assert reached_allocations(empty_sources, tmp_path, text + "    self.b.zero_()\n") == set()


@pytest.mark.parametrize(
    "lines",
    ["y = torch.empty(3) + 1", "x = torch.empty(3)\nprint(x.sum())", "x = torch.empty(3)\nx += 1",
     "torch.sum(torch.empty(3))", "x = torch.empty(3)\ny = x * 2\nx.fill_(0)", "x = torch.empty(3)\nx.add_(1)",
     "x = nn.Parameter(torch.empty(3))\ny = -x"],
)  # fmt: skip
def test_memory_that_is_read_first_is_an_error(empty_sources: SourceIndex, tmp_path: Path, lines: str) -> None:
    assert "sure" in reached_allocations(empty_sources, tmp_path, lines)


@pytest.mark.parametrize(
    "lines",
    ["f(torch.empty(3))", "def g():\n  return torch.empty(3)", "x = torch.empty(3)\nx[0] = 1\nx.sum()",
     "x = [torch.empty(3) for _ in range(2)]", "x = torch.empty(3)\ndef g():\n  return x + 1",
     "a = b\na.weight = torch.empty(3)", "x, y = torch.empty(3), 1"],
)  # fmt: skip
def test_memory_that_may_be_read_first_is_a_warning(empty_sources: SourceIndex, tmp_path: Path, lines: str) -> None:
    assert reached_allocations(empty_sources, tmp_path, lines) == {"may"}


@pytest.mark.parametrize(("lines", "level"), [("y = torch.empty(3) + 1", "error"), ("f(torch.empty(3))", "warning")])
def test_the_level_of_each_finding(status: Status, tmp_path: Path, lines: str, level: str) -> None:
    build = InstalledBuild("torch", "2.13.0", "torch2.13", True)
    findings = check_program(status, build, "cpu", parsed_program(tmp_path, HEAD + lines), set())
    assert {finding.source: finding.level for finding in findings}["torch-empty"] == level


@pytest.mark.parametrize(("use", "expected"), [("x.fill_(0)", set()), ("y = x + 1", {"sure"})])
def test_an_allocation_by_a_star_import_is_followed(
    empty_sources: SourceIndex, tmp_path: Path, use: str, expected: set[str]
) -> None:
    assert reached_allocations(empty_sources, tmp_path, f"from torch import *\nx = empty(3)\n{use}") == expected


SIZES = ["3", "3, 4", "n, m", "len(y)", "*y.shape", "y.size(0)", "y.shape[0]", "2 * n"]


@pytest.mark.parametrize("maker", ["torch.Tensor", "torch.FloatTensor"])
@pytest.mark.parametrize("sizes", SIZES)
def test_torch_tensor_class_with_sizes_is_uninitialized(
    empty_sources: SourceIndex, tmp_path: Path, maker: str, sizes: str
) -> None:
    assert reached_allocations(empty_sources, tmp_path, f"x = {maker}({sizes})\nz = x + 1") == {"sure"}
    assert reached_allocations(empty_sources, tmp_path, f"x = {maker}({sizes})\nx.normal_()\nz = x + 1") == set()


@pytest.mark.parametrize("values", ["", "[1, 2]", "rows", "np.ones(3)", "x * y", "f(3)", "2.5"])
def test_torch_tensor_class_with_values_is_initialized(empty_sources: SourceIndex, tmp_path: Path, values: str) -> None:
    assert reached_allocations(empty_sources, tmp_path, f"z = torch.Tensor({values}) + 1") == set()


def test_a_parameter_of_sizes_is_followed_to_its_initializer(empty_sources: SourceIndex, tmp_path: Path) -> None:
    allocation = "Parameter(torch.Tensor(3, 3))"
    assert (
        reached_allocations(empty_sources, tmp_path, MODULE.format(made=allocation, reset="init.ones_(self.weight)"))
        == set()
    )
    assert reached_allocations(empty_sources, tmp_path, MODULE.format(made=allocation, reset="pass")) == {"may"}
