"""The imports of runtime/: no circle, and no layer of the probe imports one above it."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from runtime_imports import import_graph

# The packages, and the layers of the probe: each imports only those of later rows.
PACKAGES = [{"tfdet_probe"}, {"tfdeterminism", "tfdet_common"}]
# Folders of tfdet_probe, from the top layer to the lowest.
PROBE_LAYERS = [{"", "__main__", "single_run"}, {"core"}, {"devices", "launchers"}, {"frameworks"}, {"base"}]


def package(module: str) -> str:
    """Return the top package of a module."""
    return module.partition(".")[0]


def probe_layer(module: str) -> str:
    """Return the first folder or module below tfdet_probe."""
    return module.partition(".")[2].partition(".")[0]


def find_circle(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules of an import circle, or none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def find_upward_imports(graph: dict[str, set[str]]) -> list[str]:
    """Return the imports of another layer that is not below the importing module's own."""
    in_probe = {module: targets for module, targets in graph.items() if package(module) == "tfdet_probe"}
    faults = []
    for modules, rows, layer in [(graph, PACKAGES, package), (in_probe, PROBE_LAYERS, probe_layer)]:
        height = {name: -index for index, row in enumerate(rows) for name in row}
        faults += [
            f"{module} imports {target}"
            for module, targets in modules.items()
            for target in sorted(targets & modules.keys())
            if layer(module) != layer(target) and height[layer(module)] <= height[layer(target)]
        ]
    return faults


def test_no_circle() -> None:
    graph = import_graph()
    assert {package(module) for module in graph} == set.union(*PACKAGES)
    assert find_circle(graph) == []


def test_no_upward_import() -> None:
    graph = import_graph()
    layers = {probe_layer(module) for module in graph if package(module) == "tfdet_probe"}
    assert layers == set.union(*PROBE_LAYERS)
    assert find_upward_imports(graph) == []


@pytest.mark.parametrize(
    ("path", "line", "faults"),
    [
        ("tfdet_common/a.py", "import tfdeterminism.version", 1),
        ("tfdeterminism/a.py", "from tfdet_probe import case", 1),
        ("tfdet_probe/base/a.py", "from ..frameworks.base import Framework", 1),
        ("tfdet_probe/frameworks/jax/a.py", "def f():\n    from ...core import child", 1),
        ("tfdet_probe/devices/a.py", "from ..launchers import base", 1),
        ("tfdet_probe/core/a.py", "from .. import launchers, single_run", 1),
        ("tfdet_probe/core/a.py", "from .. import launchers", 0),
    ],
)
def test_an_upward_import_is_found(tmp_path: Path, path: str, line: str, faults: int) -> None:
    for name in import_graph():
        file = tmp_path / name.replace(".", "/") / "__init__.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (tmp_path / path).write_text(line)
    assert len(find_upward_imports(import_graph(tmp_path))) == faults


def test_a_circle_is_found(tmp_path: Path) -> None:
    (tmp_path / "tfdet_common").mkdir()
    (tmp_path / "tfdet_common" / "a.py").write_text("from . import b")
    (tmp_path / "tfdet_common" / "b.py").write_text("def f():\n    from .a import g")
    assert len(find_circle(import_graph(tmp_path))) == 3
