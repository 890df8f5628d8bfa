"""Unreadable files are errors, not treated as absent."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from signers import run_tfdet

from tfdet.base.errors import DataError, ExitCode
from tfdet.base.folders import is_there, list_entries, walk_files
from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.store import audits, batch_invariance, costs
from tfdet.store.cases import current_cases
from tfdet.store.evidence import EvidenceStore
from tfdet.store.signatures import AttestationStore

ROOT = Path(__file__).resolve().parents[3]


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def dangling_link(path: Path) -> None:
    path.symlink_to("no such thing")


def empty_file(path: Path) -> None:
    path.write_text("")


# A folder of matrix/, and a call that reads it.
READERS: dict[str, Callable[[Project], object]] = {
    "evidence": lambda project: EvidenceStore.open(project).files(),
    "evidence/cpu": lambda project: EvidenceStore.open(project).files(),
    "signatures": lambda project: AttestationStore.open(project, load_matrix(project.matrix)).find_faults(),
    "signatures/nvidia-h100-80gb-hbm3": lambda project: AttestationStore.open(
        project, load_matrix(project.matrix)
    ).find_faults(),
    "keys": lambda project: load_matrix(project.matrix),
    "environments/torch": lambda project: load_matrix(project.matrix),
    "solutions": lambda project: load_matrix(project.matrix),
    "ops": lambda project: load_matrix(project.matrix),
    "audits": audits.load_all,
    "costs": lambda project: costs.costs_of_source(project, "tf2.0", "bias-add-backprop"),
    "batches": batch_invariance.load_all,
    "../tests/suite": current_cases,
}


@pytest.mark.parametrize("name", READERS)
def test_a_folder_that_cannot_be_read_is_an_error(copy: Project, tmp_path: Path, name: str) -> None:
    folder = Path(os.path.normpath(copy.matrix / name))
    READERS[name](copy)
    if folder.exists():
        folder.rename(tmp_path / "away")
    folder.parent.mkdir(exist_ok=True)
    for replacement in (link_to_itself, dangling_link, empty_file):
        replacement(folder)
        if replacement is empty_file and "/" in name and name.count("/") == 1 and not name.startswith(".."):
            folder.unlink()  # an empty file is tried only in place of the suite and of whole folders of matrix/
            continue
        with pytest.raises(DataError, match=folder.name):
            READERS[name](copy)
        folder.unlink()


def test_unreadable_evidence_prevents_writing_tables(copy: Project) -> None:
    """Regression: 26 files were skipped without a message."""
    before = {path: path.read_bytes() for path in walk_files(copy.root / "docs")}
    copy.evidence.rename(copy.root / "away")
    link_to_itself(copy.evidence)
    done = run_tfdet(copy, "status", "--write")
    assert (done.returncode, str(copy.evidence) in done.stderr.replace("\n", "")) == (ExitCode.USAGE, True)
    assert {path: path.read_bytes() for path in walk_files(copy.root / "docs")} == before


AS_NOBODY = """
import os, sys
from pathlib import Path
from tfdet.base.errors import DataError
from tfdet.base.folders import is_there, list_entries
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
folder = Path(sys.argv[1])
for read in (
    lambda: list_entries(folder), lambda: list_entries(folder.parent, "*/*.toml"), lambda: is_there(folder / "x")
):
    try:
        read()
    except DataError as error:
        print(error.cause, error.code.value)
"""


def test_a_folder_without_permission_is_not_empty() -> None:
    """Run as another user, because permissions do not bind root."""
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        Path(temporary).chmod(0o755)
        folder = Path(temporary) / "keys"
        folder.mkdir(mode=0o700)
        (folder / "lab.toml").touch()
        if os.getuid():
            folder.chmod(0)
        done = subprocess.run([sys.executable, "-c", AS_NOBODY, folder], capture_output=True, text=True, timeout=60)
        folder.chmod(0o700)
    assert done.stdout.splitlines() == [f"{folder}: Permission denied 2"] * 2 + [
        f"{folder / 'x'}: Permission denied 2"
    ], done.stderr


def test_a_folder_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert (
        list_entries(tmp_path / "none", "*/*"),
        list(walk_files(tmp_path / "none")),
        is_there(tmp_path / "none"),
    ) == (
        [],
        [],
        False,
    )


# What the package itself brings, or has just made, or completes in a shell.
ALLOWED = {"base/folders.py", "base/runtime_folder.py", "cli/options.py", "publish/lists.py", "publish/render.py",
           "site/page.py", "site/build.py", "site/feed.py"}  # fmt: skip


def test_folders_are_listed_only_by_the_functions_of_base_folders() -> None:
    """`Path.glob` does not report folders that it cannot read."""
    functions = set()
    for package in ("base", "matrix", "store", "verdicts", "publish", "site", "fleet", "cli"):
        for path in sorted((ROOT / "src" / "tfdet" / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Attribute) and node.attr in ("glob", "rglob", "iterdir"):
                    functions.add(str(path.relative_to(ROOT / "src" / "tfdet")))
    assert functions - ALLOWED == set()
