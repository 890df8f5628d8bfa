"""The layers of vgpu/src: the includes of its files against the table of vgpu/README.md."""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

VGPU = Path(__file__).resolve().parents[2] / "vgpu"
SOURCES = VGPU / "src"
# Files of core/ that an instruction set may include: its interface, and the errors that it throws.
CONTRACT = {"core/instruction_set.h", "core/error.h"}
INSTRUCTION_SETS = ("ptx", "sm80")


def read_layers(readme: str) -> list[str]:
    """Return the folders of the README's table, the highest first."""
    table = readme.partition("| layer | duty |\n")[2].partition("\n\n")[0]
    return re.findall(r"^\| `(\w+)/` \|", table, re.MULTILINE)


def read_includes(root: Path) -> dict[str, set[str]]:
    """Return {file: the files of `root` that it includes}, with paths relative to `root`."""
    graph = {}
    for path in sorted(root.rglob("*.cpp")) + sorted(root.rglob("*.h")):
        names = re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text("utf-8"), re.MULTILINE)
        siblings = {name for name in names if (path.parent / name).is_file()}
        missing = [name for name in names if name not in siblings and not (root / name).is_file()]
        assert not missing, f"{path} includes what is not there: {missing}"
        targets = {(path.parent / name).resolve() for name in siblings} | {
            root / name for name in set(names) - siblings
        }
        graph[path.relative_to(root).as_posix()] = {file.relative_to(root).as_posix() for file in targets}
    return graph


def layer(path: str) -> str:
    return path.partition("/")[0]


def find_upward_includes(graph: dict[str, set[str]], order: list[str]) -> list[str]:
    """Return includes of a layer that is not below the including file's own."""
    height = {name: -index for index, name in enumerate(order)}
    return [
        f"{path} includes {target}"
        for path, targets in graph.items()
        for target in sorted(targets)
        if layer(path) != layer(target) and height[layer(path)] <= height[layer(target)]
    ]


def find_forbidden_core_includes(graph: dict[str, set[str]]) -> list[str]:
    """Return includes by which an instruction set uses more of the core than the contract."""
    return [
        f"{path} includes {target}"
        for path, targets in graph.items()
        for target in sorted(targets - CONTRACT)
        if layer(path) in INSTRUCTION_SETS and layer(target) == "core"
    ]


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return the files of an include cycle, or an empty list."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.fixture(scope="module")
def order():
    return read_layers((VGPU / "README.md").read_text("utf-8"))


@pytest.fixture(scope="module")
def graph():
    return read_includes(SOURCES)


def test_the_table_names_each_folder(order):
    assert sorted(order) == sorted(path.name for path in SOURCES.iterdir())


def test_no_layer_includes_one_above_it(graph, order):
    assert find_upward_includes(graph, order) == []


def test_instruction_sets_include_only_the_contract_of_core(graph):
    assert find_forbidden_core_includes(graph) == []


def test_includes_have_no_cycle(graph):
    assert find_cycle(graph) == []


@pytest.mark.parametrize(
    ("path", "target", "check"),
    [
        ("core/memory.h", "ptx/decoder.h", "upward"),
        ("image/fatbin.cpp", "ptx/module.h", "upward"),
        ("ptx/decoder.cpp", "core/block.h", "contract"),
        ("core/lanes.h", "core/warp_context.h", "circle"),
    ],
)
def test_a_planted_include_is_found(graph, order, path, target, check):
    assert target in graph and target not in graph[path]
    planted = {**graph, path: graph[path] | {target}}
    violations = {"upward": find_upward_includes(planted, order), "contract": find_forbidden_core_includes(planted)}
    if check == "circle":
        assert {path, target} <= set(find_cycle(planted))
    else:
        assert violations[check] == [f"{path} includes {target}"]


def test_includes_are_read_from_the_files(tmp_path):
    (tmp_path / "core").mkdir()
    (tmp_path / "core/a.h").write_text('#pragma once\n# include "b.h"\n#include <vector>\n')
    (tmp_path / "core/b.h").write_text("")
    (tmp_path / "a.cpp").write_text('#include "core/a.h"\n// #include "core/b.h"\n')
    assert read_includes(tmp_path) == {"a.cpp": {"core/a.h"}, "core/a.h": {"core/b.h"}, "core/b.h": set()}
