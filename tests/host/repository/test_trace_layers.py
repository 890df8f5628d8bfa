"""The layers of the trace: each imports only lower ones, and only a framework's own folder imports it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from runtime_imports import RUNTIME, imports

TRACE = RUNTIME / "tfdeterminism" / "trace"
FRAMEWORKS = {"tensorflow", "tensorflow_core", "keras", "tf_keras", "torch", "jax"}
FOLDERS = {"tensorflow": {"tensorflow", "tensorflow_core", "keras", "tf_keras"}, "torch": {"torch"}}  # in capture
ANY_LAYER_MAY_IMPORT = {
    "errors",
    "untrusted",
    "faults",
    "remedies",
    "backends",
    "command_line",
}  # modules beside the layers
BELOW = {
    "interpose": set(),
    "schema": set(),
    "capture": {"schema", "interpose"},
    "align": {"schema"},
    "causes": {"schema", "align"},
    "search": {"schema", "align", "causes", "interpose"},
    "report": {"schema", "align", "causes", "search"},
    "commands": {"schema", "align", "causes", "search", "report"},
}


def files(layer: str) -> list[Path]:
    """Return the Python files of a layer."""
    paths = sorted((TRACE / layer).rglob("*.py"))
    assert paths, f"trace/{layer} is empty: nothing would be looked at"
    return paths


def test_every_folder_is_a_layer() -> None:
    """A folder without sources is a leftover of an earlier checkout with compiled files."""
    assert {path.name for path in TRACE.iterdir() if any(path.glob("*.py"))} == set(BELOW)


@pytest.mark.parametrize("layer", BELOW)
def test_a_layer_imports_only_those_below_it(layer: str) -> None:
    for path in files(layer):
        for name in imports(path):
            if name.startswith("tfdeterminism.trace."):
                assert name.split(".")[2] in BELOW[layer] | ANY_LAYER_MAY_IMPORT | {layer}, (
                    f"{path.name} imports {name}"
                )


def test_modules_that_every_layer_imports_import_no_layer() -> None:
    for name in ANY_LAYER_MAY_IMPORT:
        for imported in imports(TRACE / f"{name}.py"):
            assert not imported.startswith("tfdeterminism.trace.") or imported.split(".")[2] in ANY_LAYER_MAY_IMPORT, (
                f"{name}: {imported}"
            )


@pytest.mark.parametrize("layer", sorted(set(BELOW) - {"capture"}))
def test_analysis_needs_the_standard_library_and_numpy_alone(layer: str) -> None:
    for path in files(layer):
        for name in imports(path):
            assert name.partition(".")[0] in {*sys.stdlib_module_names, "numpy", "tfdeterminism"}, (path, name)


def test_only_the_folder_of_a_framework_imports_it() -> None:
    modules = list(TRACE.rglob("*.py"))
    assert {path.parent.name for path in modules} >= {*FOLDERS, *BELOW, "trace"}
    for path in modules:
        allowed = FOLDERS.get(path.parent.name, set()) if path.parent.parent.name == "capture" else set()
        assert not (FRAMEWORKS - allowed) & {name.partition(".")[0] for name in imports(path)}, path


def test_no_op_of_a_framework_is_named_outside_its_folder() -> None:
    """A rule asks for traits of an op, which the folder of its framework writes."""
    from tfdeterminism.trace.capture.tensorflow import op_traits

    advice = json.loads((TRACE / "advice.json").read_text("utf-8"))
    ops = {op for source in advice["sources"].values() for op in source["ops"]}
    ops |= op_traits.READS | op_traits.FEEDS | op_traits.CALLS | op_traits.STATEFUL | op_traits.ALIASES
    assert "MatMul" not in ops and {"CropAndResizeGradImage", "Timestamp", "ReadVariableOp"} <= ops
    for layer in set(BELOW) - {"capture"}:
        for path in files(layer):
            words = {word for text in strings(path) for word in text.replace("(", " ").split()}
            # The names of these six ops are English words, too.
            assert not words & (ops - {"Case", "If", "While", "Size", "Shape", "Rank"}), path
            assert not [word for word in words if word.startswith(("aten.", "c10d"))], path


def strings(path: Path) -> Iterator[str]:
    """Return the string constants of a module, without docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = {id(node.body[0].value) for node in ast.walk(tree)
            if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def test_analysis_loads_where_no_framework_can_be_imported() -> None:
    """This finds imports of module names that are made at run time."""
    program = f"""
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys({sorted(FRAMEWORKS)}))
for layer in {sorted(set(BELOW) - {"capture"})}:
    package = importlib.import_module("tfdeterminism.trace." + layer)
    for one in pkgutil.iter_modules(package.__path__):
        importlib.import_module(package.__name__ + "." + one.name)
assert not [name for name in sys.modules if name.startswith("tfdeterminism.trace.capture")]
"""
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(RUNTIME)}, check=True)
