"""The debug tool's rooms: capture runs inside a framework, analysis knows none and knows nothing of capture."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

RUNTIME = Path(__file__).resolve().parents[3] / "runtime"
LIBRARY = RUNTIME / "tfdeterminism"
TRACE = LIBRARY / "trace"
FRAMEWORKS = {"tensorflow", "tensorflow_core", "keras", "tf_keras", "torch", "jax"}
FOLDERS = {"tensorflow": {"tensorflow", "tensorflow_core", "keras", "tf_keras"}, "torch": {"torch"}}  # in capture


def imports(path: Path) -> Iterator[str]:
    """The modules that a file names, wherever in it: absolute, with what is taken from them."""
    package = path.relative_to(RUNTIME).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{start}.{alias.name}" for alias in node.names)


def files(room: str) -> list[Path]:
    found = sorted((TRACE / room).rglob("*.py"))
    assert found, f"trace/{room} is empty: nothing would be looked at"
    return found


@pytest.mark.parametrize("path", files("analyse"), ids=lambda path: path.name)
def test_analysis_imports_neither_capture_nor_a_framework(path: Path) -> None:
    for name in imports(path):
        top = name.partition(".")[0]
        assert top in {*sys.stdlib_module_names, "numpy", "tfdeterminism"}, name
        assert not name.startswith("tfdeterminism.trace.capture"), name


def test_only_the_folder_of_a_framework_imports_it() -> None:
    every = list(TRACE.rglob("*.py"))
    assert {path.parent.name for path in every} >= {*FOLDERS, "capture", "analyse", "trace"}
    for path in every:
        theirs = FOLDERS.get(path.parent.name, set()) if path.parent.parent.name == "capture" else set()
        assert not (FRAMEWORKS - theirs) & {name.partition(".")[0] for name in imports(path)}, path


def test_analysis_loads_where_no_framework_can_be_imported() -> None:
    """What no reading of imports sees: a module that is looked up by a name made at run time."""
    program = f"""
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys({sorted(FRAMEWORKS)}))
from tfdeterminism.trace import analyse
for one in pkgutil.iter_modules(analyse.__path__):
    importlib.import_module("tfdeterminism.trace.analyse." + one.name)
assert not [name for name in sys.modules if name.startswith("tfdeterminism.trace.capture")]
"""
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(RUNTIME)}, check=True)


def test_no_circle_of_imports_in_the_public_library() -> None:
    """Wherever an import stands: one inside a function is one, too."""
    names = {".".join(path.relative_to(RUNTIME).with_suffix("").parts): path for path in LIBRARY.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in names.items()}
    needs = {
        name: {_module(taken, modules) for taken in imports(path)} - {None, name} for name, path in modules.items()
    }
    order = tuple(TopologicalSorter(needs).static_order())  # CycleError names the circle
    assert len(order) == len(modules)


def _module(taken: str, modules: dict[str, Path]) -> str | None:
    """The module of the library that an imported name is, or is in."""
    return taken if taken in modules else taken.rpartition(".")[0] if taken.rpartition(".")[0] in modules else None
