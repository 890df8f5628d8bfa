"""How the pytest plugin of tfdet finds the framework of a module when a session has imported several frameworks."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_sessions import run_session

from tfdet.cli.pytest_framework import find_frameworks

PACKAGES = {"jax": "jax", "tensorflow": "tensorflow", "torch": "torch"}


@pytest.fixture
def project_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a project with an installed package beside fake frameworks."""
    installed = tmp_path / "site-packages"
    for name in ("jax", "jax/numpy", "torch", "torch/nn", "keras"):
        (installed / name).mkdir(parents=True)
        (installed / name / "__init__.py").touch()
    (installed / "keras" / "__init__.py").write_text("import torch as backend\n", "utf-8")
    monkeypatch.syspath_prepend(installed)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def found_frameworks(project_folder: Path, text: str, *loaded: str, **files: str) -> list[str]:
    """Return the frameworks that the plugin finds for a module with this text.

    loaded: modules that are imported before; files: the text of more modules, with `__` in a name for `/`.
    """
    for name, content in files.items():
        path = project_folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, "utf-8")
    (project_folder / "test_mine.py").write_text(text, "utf-8")
    importlib.invalidate_caches()
    for name in loaded:
        importlib.import_module(name)
    return find_frameworks(importlib.import_module("test_mine"), project_folder / "test_mine.py", PACKAGES)


@pytest.mark.parametrize(
    "text",
    [
        "import torch",
        "import torch.nn as layers",
        "from torch import nn",
        "from torch.nn import *",
        "def test(make):\n    import torch",
        "def test(make):\n    from torch.nn import functional",
        "import importlib\nengine = importlib.import_module('torch')",
        "def test(make):\n    import pytest\n    t = pytest.importorskip('torch')",
        "name = 'to' + 'rch'\nimport importlib\nengine = importlib.import_module(name)",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import jax\nelse:\n    import torch",
        "try:\n    import tensorflow\nexcept ImportError:\n    import torch",
    ],
)
def test_a_framework_that_the_module_imports_is_found(project_folder: Path, text: str) -> None:
    assert found_frameworks(project_folder, text, "jax", "torch") == ["torch"]


def test_a_framework_that_imported_user_modules_import_is_found(project_folder: Path) -> None:
    text = "from mine.layers import layer"
    assert found_frameworks(
        project_folder, text, "jax", mine__layers="from . import deep\nlayer = 1", mine__deep="import torch"
    ) == ["torch"]


def test_a_direct_import_precedes_an_indirect_one(project_folder: Path) -> None:
    assert found_frameworks(project_folder, "import jax, layers", layers="import torch") == ["jax"]


def test_the_framework_that_an_installed_package_loaded_is_found(project_folder: Path) -> None:
    assert found_frameworks(project_folder, "import keras", "jax") == ["torch"]


def test_without_imports_the_loaded_frameworks_are_found(project_folder: Path) -> None:
    assert found_frameworks(project_folder, "import os") == []
    assert found_frameworks(project_folder, "import os", "jax") == ["jax"]
    assert found_frameworks(project_folder, "import os", "torch") == ["jax", "torch"]


def test_a_module_of_two_frameworks_has_to_name_one(project_folder: Path) -> None:
    (project_folder / "conftest.py").write_text("import sys\nsys.path.insert(0, 'site-packages')\n", "utf-8")
    (project_folder / "test_mine.py").write_text(
        "import jax, torch\nfrom tfdet_probe import case\n"
        '@case("mine", modes=["host"])\ndef test_mine(make): return make.host(lambda: [])\n'
    )
    done = run_session(project_folder, "--tfdet", "test_mine.py")
    assert "test_mine.py may be of jax or torch: name one by --tfdet-framework" in done.stdout
