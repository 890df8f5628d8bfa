"""The layers of vgpu/src: what each includes, held against the table of vgpu/README.md."""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

VGPU = Path(__file__).resolve().parents[2] / "vgpu"
SOURCES = VGPU / "src"
# Of core/: the contract of an instruction set, and what it throws.
CONTRACT = {"core/instruction_set.h", "core/error.h"}
INSTRUCTION_SETS = ("ptx", "sm80")


def layers(readme: str) -> list[str]:
    """The folders of the README's table, the highest first."""
    table = readme.partition("| layer | duty |\n")[2].partition("\n\n")[0]
    return re.findall(r"^\| `(\w+)/` \|", table, re.MULTILINE)


def includes(root: Path) -> dict[str, set[str]]:
    """{file: files of `root` that it includes}, by their paths below `root`."""
    found = {}
    for path in sorted(root.rglob("*.cpp")) + sorted(root.rglob("*.h")):
        named = re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text("utf-8"), re.MULTILINE)
        beside = {name for name in named if (path.parent / name).is_file()}
        missing = [name for name in named if name not in beside and not (root / name).is_file()]
        assert not missing, f"{path} includes what is not there: {missing}"
        below = {(path.parent / name).resolve() for name in beside} | {root / name for name in set(named) - beside}
        found[path.relative_to(root).as_posix()] = {one.relative_to(root).as_posix() for one in below}
    return found


def layer(path: str) -> str:
    return path.partition("/")[0]


def upward(graph: dict[str, set[str]], order: list[str]) -> list[str]:
    """Includes that lead to a layer that is not below the including file's own."""
    height = {name: -at for at, name in enumerate(order)}
    return [
        f"{path} includes {target}"
        for path, targets in graph.items()
        for target in sorted(targets)
        if layer(path) != layer(target) and height[layer(path)] <= height[layer(target)]
    ]


def beside_the_contract(graph: dict[str, set[str]]) -> list[str]:
    """Includes by which an instruction set knows more of the core than the contract."""
    return [
        f"{path} includes {target}"
        for path, targets in graph.items()
        for target in sorted(targets - CONTRACT)
        if layer(path) in INSTRUCTION_SETS and layer(target) == "core"
    ]


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Files that include each other, one after the other; empty: there are none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.fixture(scope="module")
def order():
    return layers((VGPU / "README.md").read_text("utf-8"))


@pytest.fixture(scope="module")
def graph():
    return includes(SOURCES)


def test_the_table_names_each_folder(order):
    assert sorted(order) == sorted(path.name for path in SOURCES.iterdir())


def test_no_layer_includes_one_above_it(graph, order):
    assert upward(graph, order) == []


def test_instruction_sets_know_of_the_core_what_the_contract_says(graph):
    assert beside_the_contract(graph) == []


def test_no_file_includes_itself_by_way_of_others(graph):
    assert circle(graph) == []


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
    found = {"upward": upward(planted, order), "contract": beside_the_contract(planted)}
    if check == "circle":
        assert {path, target} <= set(circle(planted))
    else:
        assert found[check] == [f"{path} includes {target}"]


def test_includes_are_read_from_the_files(tmp_path):
    (tmp_path / "core").mkdir()
    (tmp_path / "core/a.h").write_text('#pragma once\n# include "b.h"\n#include <vector>\n')
    (tmp_path / "core/b.h").write_text("")
    (tmp_path / "a.cpp").write_text('#include "core/a.h"\n// #include "core/b.h"\n')
    assert includes(tmp_path) == {"a.cpp": {"core/a.h"}, "core/a.h": {"core/b.h"}, "core/b.h": set()}
