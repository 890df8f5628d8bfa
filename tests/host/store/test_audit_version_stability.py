"""Cells do not become stale by changes without effect: renamed modules of the audit, comments and layout of cases."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tfdet.base.paths import Project


def cells(project: Project) -> str:
    """Return the cells that this copy's tfdet infers from its own data."""
    path = os.pathsep.join([str(project.root / "src"), str(project.runtime)])
    done = subprocess.run(
        [sys.executable, "-m", "tfdet", "status", "--json"],
        cwd=project.root,
        env={**os.environ, "PYTHONPATH": path, "TFDET_ROOT": str(project.root)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stderr == ""  # a stale audit would be told
    return done.stdout


def rename_module(package: Path, old: str, new: str) -> None:
    """Rename a module of the audit in a copied package, and its name wherever it is imported."""
    (package / "audit" / f"{old}.py").rename(package / "audit" / f"{new}.py")
    for path in package.rglob("*.py"):
        text = path.read_text("utf-8")
        path.write_text(re.sub(rf"(tfdet\.audit\.|tfdet\.audit import .*?){old}\b", rf"\1{new}", text), "utf-8")


def test_renamed_modules_and_comments_change_no_cell(copy: Project, checkout: Project) -> None:
    shutil.copytree(checkout.root / "src", copy.root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    before = cells(copy)
    rename_module(copy.root / "src" / "tfdet", "capability", "abilities")
    for path in copy.suite("tensorflow").glob("test_*.py"):
        text = path.read_text("utf-8").replace("\n@case(", "\n\n# what the next one is for\n@case(")
        path.write_text(re.sub(r"^    (return .*)$", r"    # and so\n    \1  # at last", text, flags=re.M), "utf-8")
    assert '"backing": "audited"' in before and '"measured"' in before
    assert cells(copy) == before


def test_a_changed_case_changes_its_cells(copy: Project, checkout: Project) -> None:
    """This is the control of the test above."""
    shutil.copytree(checkout.root / "src", copy.root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    before = cells(copy)
    path = copy.suite("tensorflow") / "test_bias.py"
    path.write_text(re.sub(r"^    return ", "    pass\n    return ", path.read_text("utf-8"), flags=re.M), "utf-8")
    assert cells(copy) != before
