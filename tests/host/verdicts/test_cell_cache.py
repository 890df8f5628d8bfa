"""Inferred cells are cached until any byte that they follow from changes; cells of signed records are not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from signers import H100, Signer, run_tfdet, write_bundle
from site_builder import small_project

from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.store.evidence import EvidenceStore
from tfdet.store.records import parse
from tfdet.verdicts import cell_cache
from tfdet.verdicts.cell_cache import CellCache
from tfdet.verdicts.infer import CellKey, InferredCell, Verdict
from tfdet.verdicts.status_loading import load_status

KEY = CellKey("tf2.0", "cpu", "bias-add-backprop", "none")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A small project whose cells this test may cache."""
    return small_project(tmp_path / "project")


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder for this test only."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tfdet" / "cells"


def forge_cache(cache_folder: Path) -> None:
    """Change the content of every cached file, so that reading one is noticed."""
    cells = [(KEY, InferredCell(Verdict.FAILED))]
    for path in cache_folder.iterdir():
        path.write_bytes(msgspec.msgpack.encode(cells))


def is_forged(project: Project, **how: bool) -> bool:
    """Return whether the cell comes from the forged cache, and not from records."""
    return load_status(project, **how).verdict(KEY) == InferredCell(Verdict.FAILED)


def test_cached_cells_equal_the_inferred_ones(project: Project, cache_folder: Path) -> None:
    first = load_status(project).verdicts
    assert len(list(cache_folder.iterdir())) == len(EvidenceStore.open(project).files())
    cached = load_status(project).verdicts
    assert cached == first == load_status(project, cached=False).verdicts
    for key, cell in first.items():
        assert cached[key].deciding_cases == cell.deciding_cases
        assert type(cached[key].verdict) is Verdict
    assert any(cell.proof for cell in cached.values()) and any(cell.variants for cell in cached.values())


def test_the_cache_is_used_except_when_every_record_must_be_read(project: Project, cache_folder: Path) -> None:
    load_status(project)
    forge_cache(cache_folder)
    assert is_forged(project)
    assert not is_forged(project, cached=False)
    assert not is_forged(project, include_unsigned=True)


@pytest.mark.parametrize("name", [b"\xff.jsonl", b"\xff/tf2.0.jsonl"])
def test_a_name_of_a_file_that_is_no_utf_8(copy: Project, name: bytes) -> None:
    """An empty file of records is no fault, whatever its name."""
    path = os.path.join(os.fsencode(copy.evidence), b"cpu" if b"/" not in name else b"", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "xb"):
        pass
    cells = len(load_status(copy).cells)
    os.unlink(path)
    assert cells == len(load_status(copy).cells)


def test_status_check_does_not_use_the_cache(copy: Project, cache_folder: Path) -> None:
    load_status(copy)
    forge_cache(cache_folder)
    assert is_forged(copy)
    done = run_tfdet(copy, "status", "--check")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "changed",
    [
        "matrix/solutions/tensorflow/TDO.toml",
        "matrix/ops/torch/torch2.13.json",
        "matrix/evidence/earlier-hashes.json",
    ],
)
def test_a_change_of_the_matrix_invalidates_the_cache(project: Project, cache_folder: Path, changed: str) -> None:
    load_status(project)
    forge_cache(cache_folder)
    path = project.root / changed
    path.write_text(path.read_text("utf-8") + "\n", "utf-8")
    assert not is_forged(project)


def test_a_change_of_the_suite_or_of_tfdet_invalidates_the_cache(
    project: Project, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_status(project)
    forge_cache(cache_folder)
    # The packages whose code the cells depend on; one less stands for a change of code.
    monkeypatch.setattr(cell_cache, "_CODE", ("tfdet", "tfdet_common"))
    assert not is_forged(project)
    forge_cache(cache_folder)
    suite = project.root / "tests"
    link_target = suite.resolve()
    suite.unlink()
    (suite / "suite" / "tensorflow").mkdir(parents=True)
    for path in link_target.glob("suite/tensorflow/*.py"):
        (suite / "suite" / "tensorflow" / path.name).write_bytes(path.read_bytes() + b"\n")
    assert not is_forged(project)


def test_a_changed_record_is_reported_despite_the_cache(project: Project, cache_folder: Path) -> None:
    load_status(project)
    path = project.evidence / "cpu" / "tf2.0.jsonl"
    path.write_text(path.read_text("utf-8").replace('"observation":"equal"', '"observation":"differs"', 1), "utf-8")
    with pytest.raises(DataError, match="checksum"):
        load_status(project)


def test_cells_of_signed_records_are_not_cached(project: Project, cache_folder: Path) -> None:
    path = project.evidence / "cpu" / "tf2.0.jsonl"
    records = list(EvidenceStore.open(project).read(path))[:3]
    signer = Signer("lab")
    signer.trust_in(project, device="cpu")
    bundle = project.matrix / "signatures" / "cpu" / "tf2.0.intoto.jsonl"
    bundle.parent.mkdir(parents=True)
    bundle.write_text("".join(signer.sign(project, records)), "ascii")
    load_status(project)
    assert len(list(cache_folder.iterdir())) == len(EvidenceStore.open(project).files()) - 1
    forge_cache(cache_folder)
    signer.write_revoked_key(project, device="cpu")
    assert not is_forged(project)


def test_cells_with_records_of_the_command_line_are_not_cached(
    project: Project, cache_folder: Path, record_line: Callable[..., bytes]
) -> None:
    bundle = write_bundle(project, "more.jsonl", [parse(record_line("differs", **H100))])
    load_status(project, [bundle])
    assert not cache_folder.exists()


def test_an_unreadable_cache_is_ignored(project: Project, cache_folder: Path) -> None:
    first = load_status(project).verdicts
    for path in cache_folder.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert load_status(project).verdicts == first
    for path in cache_folder.iterdir():
        path.unlink()
    cache_folder.rmdir()
    cache_folder.write_text("a file")
    assert load_status(project).verdicts == first


def test_the_least_recently_used_files_are_removed(project: Project, cache_folder: Path) -> None:
    load_status(project)
    files = sorted(cache_folder.iterdir())
    for number, path in enumerate(files):
        os.utime(path, (number, number))
    load_status(project)  # all are used again
    assert min(path.stat().st_mtime for path in files) > len(files)
    oldest, *rest = files
    os.utime(oldest, (1, 1))
    CellCache(cache_folder, "").trim(sum(path.stat().st_size for path in rest))
    assert sorted(cache_folder.iterdir()) == rest
