"""The generated file unbundle.py, which joins several modules."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bundle_builders import RUNTIME

from tfdet.bundle import script


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    """Return a copy of the runtime folder that a test may change."""
    for package in ("unbundle", "tfdet_common"):
        shutil.copytree(RUNTIME / package, tmp_path / package)
    return tmp_path


def test_every_module_follows_those_that_it_imports() -> None:
    text = script.build(RUNTIME)
    module_names = [line.split()[2].rstrip(":") for line in text.splitlines() if line.startswith("# --- ")]
    assert {f"unbundle.{path.stem}" for path in (RUNTIME / "unbundle").glob("[a-z]*.py")} == {
        name for name in module_names if name.startswith("unbundle.")
    }
    assert "tfdet_common.versions" in module_names
    assert module_names[-1] == "unbundle.main"
    assert (
        module_names.index("unbundle.errors")
        < module_names.index("unbundle.bundle")
        < module_names.index("unbundle.unpack")
    )


def test_the_same_modules_give_the_same_bytes(runtime: Path) -> None:
    assert script.build(runtime) == script.build(RUNTIME)


def test_the_script_runs_without_packages_outside_the_checkout(tmp_path: Path) -> None:
    """Run it in a Python without packages, outside the checkout."""
    path = tmp_path / script.NAME
    path.write_text(script.build(RUNTIME), "utf-8")
    done = subprocess.run([sys.executable, "-I", "-S", str(path), "--help"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "doctor | unpack | run" in done.stdout


def insert_line(path: Path, line: str) -> None:
    """Insert a line after the module's docstring."""
    docstring, end, rest = path.read_text("utf-8").partition('"""\n\n')
    path.write_text(f"{docstring}{end}{line}\n{rest}", "utf-8")


@pytest.mark.parametrize(
    "line",
    ["from tfdet_common import versions", "from unbundle.errors import BundleError as Halt", "from os import path",
     "from .stop import BundleError"],
)  # fmt: skip
def test_an_import_that_joining_would_break_is_refused(runtime: Path, line: str) -> None:
    insert_line(runtime / "unbundle" / "gpu.py", line)
    with pytest.raises(ValueError, match="cannot be joined"):
        script.build(runtime)


def test_two_modules_with_one_name_are_refused(runtime: Path) -> None:
    with (runtime / "unbundle" / "gpu.py").open("a") as out:
        out.write("\n\ndef unpack():\n    pass\n")
    with pytest.raises(ValueError, match=r"unpack is in unbundle\.\w+ and in unbundle\.\w+"):
        script.build(runtime)
