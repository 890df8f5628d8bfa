"""Inferred cells are cached until any byte that they follow from changes; cells of signed records are not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from signers import H100, Signer, tfdet, write_bundle
from site_builder import small_project

from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.store.evidence import EvidenceStore
from tfdet.store.records import parse
from tfdet.verdicts import cell_cache
from tfdet.verdicts.cell_cache import CellCache
from tfdet.verdicts.infer import CellKey, InferredCell, Verdict
from tfdet.verdicts.status_loading import load_status

FORGED = CellKey("tf2.0", "cpu", "bias-add-backprop", "none")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return small_project(tmp_path / "project")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder for this test only."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tfdet" / "cells"


def forge(folder: Path) -> None:
    """Change the content of every cached file, so that reading one is noticed."""
    cells = [(FORGED, InferredCell(Verdict.FAILED))]
    for path in folder.iterdir():
        path.write_bytes(msgspec.msgpack.encode(cells))


def is_forged(project: Project, **how: bool) -> bool:
    return load_status(project, **how).verdict(FORGED) == InferredCell(Verdict.FAILED)


def test_what_is_kept_is_what_was_inferred(project: Project, folder: Path) -> None:
    first = load_status(project).verdicts
    assert len(list(folder.iterdir())) == len(EvidenceStore.open(project).files())
    cached = load_status(project).verdicts
    assert cached == first == load_status(project, cached=False).verdicts
    for key, cell in first.items():
        assert cached[key].deciding_cases == cell.deciding_cases
        assert type(cached[key].verdict) is Verdict
    assert any(cell.proof for cell in cached.values()) and any(cell.variants for cell in cached.values())


def test_it_is_taken_but_where_every_record_is_to_be_read(project: Project, folder: Path) -> None:
    load_status(project)
    forge(folder)
    assert is_forged(project)
    assert not is_forged(project, cached=False)
    assert not is_forged(project, unsigned=True)


def test_tables_are_checked_by_the_records_alone(copy: Project, folder: Path) -> None:
    load_status(copy)
    forge(folder)
    assert is_forged(copy)
    done = tfdet(copy, "status", "--check")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "changed",
    [
        "matrix/solutions/tensorflow/TDO.toml",
        "matrix/ops/torch/torch2.13.json",
        "matrix/evidence/earlier-hashes.json",
    ],
)
def test_another_byte_of_the_matrix_is_another_state(project: Project, folder: Path, changed: str) -> None:
    load_status(project)
    forge(folder)
    path = project.root / changed
    path.write_text(path.read_text("utf-8") + "\n", "utf-8")
    assert not is_forged(project)


def test_so_is_another_suite_or_another_tfdet(project: Project, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_status(project)
    forge(folder)
    monkeypatch.setattr(cell_cache, "_CODE", ("tfdet", "tfdet_common"))
    assert not is_forged(project)
    forge(folder)
    suite = project.root / "tests"
    link_target = suite.resolve()
    suite.unlink()
    (suite / "suite" / "tensorflow").mkdir(parents=True)
    for path in link_target.glob("suite/tensorflow/*.py"):
        (suite / "suite" / "tensorflow" / path.name).write_bytes(path.read_bytes() + b"\n")
    assert not is_forged(project)


def test_a_changed_record_is_found_all_the_same(project: Project, folder: Path) -> None:
    load_status(project)
    path = project.evidence / "cpu" / "tf2.0.jsonl"
    path.write_text(path.read_text("utf-8").replace('"observation":"equal"', '"observation":"differs"', 1), "utf-8")
    with pytest.raises(DataError, match="checksum"):
        load_status(project)


def test_what_was_signed_is_verified_each_time(project: Project, folder: Path) -> None:
    path = project.evidence / "cpu" / "tf2.0.jsonl"
    records = list(EvidenceStore.open(project).read(path))[:3]
    signer = Signer("lab")
    signer.trust_in(project, device="cpu")
    bundle = project.matrix / "signatures" / "cpu" / "tf2.0.intoto.jsonl"
    bundle.parent.mkdir(parents=True)
    bundle.write_text("".join(signer.sign(project, records)), "ascii")
    load_status(project)
    assert len(list(folder.iterdir())) == len(EvidenceStore.open(project).files()) - 1
    forge(folder)
    signer.revoked(project, device="cpu")
    assert not is_forged(project)


def test_records_of_elsewhere_are_not_kept(project: Project, folder: Path, record_line: Callable[..., bytes]) -> None:
    bundle = write_bundle(project, "more.jsonl", [parse(record_line("differs", **H100))])
    load_status(project, [bundle])
    assert not folder.exists()


def test_what_cannot_be_read_there_is_inferred_again(project: Project, folder: Path) -> None:
    first = load_status(project).verdicts
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert load_status(project).verdicts == first
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.write_text("a file")
    assert load_status(project).verdicts == first


def test_no_more_is_kept_than_has_a_use(project: Project, folder: Path) -> None:
    load_status(project)
    files = sorted(folder.iterdir())
    for number, path in enumerate(files):
        os.utime(path, (number, number))
    load_status(project)  # all are used again
    assert min(path.stat().st_mtime for path in files) > len(files)
    oldest, *rest = files
    os.utime(oldest, (1, 1))
    CellCache(folder, "").trim(sum(path.stat().st_size for path in rest))
    assert sorted(folder.iterdir()) == rest
