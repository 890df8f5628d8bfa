"""Boundaries in runtime/: only adapters refer to their framework, and only the registry to kinds of devices."""

import ast
import re
from pathlib import Path

import pytest

from tfdet_probe import devices, frameworks

RUNTIME = Path(__file__).parents[2] / "runtime"
FOLDERS = [RUNTIME / "tfdet_common", RUNTIME / "tfdet_probe" / "core", RUNTIME / "tfdet_probe" / "devices"]
OUTSIDE = [path for folder in FOLDERS for path in sorted(folder.glob("*.py"))] + [
    RUNTIME / "tfdet_probe" / "__init__.py",
    RUNTIME / "tfdet_probe" / "__main__.py",
    RUNTIME / "tfdet_probe" / "frameworks" / "__init__.py",
    RUNTIME / "tfdet_probe" / "frameworks" / "base.py",
]
KINDS = {device.kind for device in devices.ALL} | {device.cli_name for device in devices.ALL}
KINDS |= {device.placement for device in devices.ALL}


def imported_modules(path):
    """Yield the names of the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def string_constants(path):
    """Yield the string constants of a file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(RUNTIME)))
def test_only_an_adapter_names_its_framework(path):
    assert not [name for name in imported_modules(path) if re.match(r"(tensorflow|keras|torch|jax)\b", name)]
    assert not [name for name in imported_modules(path) if "frameworks." in name and not name.endswith(".base")]
    assert not re.search("tensorflow|keras\\.|torch", path.read_text("utf-8"), re.I)


@pytest.mark.parametrize(
    "path", [path for path in OUTSIDE if path.parent.name != "devices"], ids=lambda path: str(path.relative_to(RUNTIME))
)
def test_only_the_registry_names_kinds_of_devices(path):
    assert not KINDS.intersection(string_constants(path))


def test_each_adapter_is_found_by_its_folders_name():
    assert frameworks.names() == ["jax", "tensorflow", "torch"]
    adapters = [frameworks.load_adapter(name) for name in frameworks.names()]
    assert [adapter.name for adapter in adapters] == frameworks.names()
    assert all(isinstance(adapter, frameworks.base.Framework) for adapter in adapters)


def test_each_device_is_found_by_its_name():
    assert [devices.by_cli_name(cli_name).cli_name for cli_name in devices.CLI_NAMES] == list(devices.CLI_NAMES)
