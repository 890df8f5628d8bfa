"""The docker engine follows no link that a container planted in the shared output folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tfdet.base.errors import RunFailedError
from tfdet.engines.docker import IMAGE_USER, _output_folder


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file outside of the folder, which a container must not reach."""
    path = tmp_path / "secret"
    path.write_text("of the caller\n")
    return path


def test_records_are_copied_in_and_out(tmp_path: Path) -> None:
    journal = tmp_path / "records.jsonl"
    journal.write_text("one\n")
    with _output_folder(journal) as folder:
        inside = folder / "records.jsonl"
        assert inside.read_text() == "one\n"
        if os.getuid() == 0:
            assert (folder.stat().st_uid, inside.stat().st_uid) == (IMAGE_USER, IMAGE_USER)
        inside.write_text("one\ntwo\n")
    assert journal.read_text() == "one\ntwo\n"
    assert journal.stat().st_uid == os.getuid()
    assert [p.name for p in tmp_path.iterdir()] == ["records.jsonl"]


def test_records_of_a_killed_run_and_of_the_next_are_both_kept(tmp_path: Path) -> None:
    journal = tmp_path / "records.jsonl"
    journal.write_text("one\nof a venv\n")
    folder = tmp_path / "records.jsonl.container"
    folder.mkdir()
    (folder / "records.jsonl").write_text("one\nof a container\ntor")
    with _output_folder(journal):
        pass
    assert journal.read_text() == "one\nof a container\nof a venv\n"


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder"])
def test_a_planted_file_that_is_not_regular_is_refused(tmp_path: Path, secret: Path, kind: str) -> None:
    journal = tmp_path / "records.jsonl"
    journal.write_text("one\n")
    before = secret.stat()
    with pytest.raises(RunFailedError, match="not a regular file"), _output_folder(journal) as folder:
        plant(folder / "records.jsonl", secret, kind)
    assert journal.read_text() == "one\n"
    assert not journal.is_symlink()
    assert secret.read_text() == "of the caller\n"
    assert (secret.stat().st_uid, secret.stat().st_ctime_ns) == (
        before.st_uid,
        before.st_ctime_ns,
    ) or kind == "hard link"
    assert not folder.exists()


@pytest.mark.parametrize("target", ["secret", "nowhere"])
def test_a_file_planted_by_an_earlier_container_is_refused(tmp_path: Path, secret: Path, target: str) -> None:
    journal = tmp_path / "records.jsonl"
    journal.write_text("one\n")
    before = secret.stat()
    folder = tmp_path / "records.jsonl.container"
    folder.mkdir()
    (folder / "records.jsonl").symlink_to(tmp_path / target)
    with pytest.raises(RunFailedError, match="not a regular file"), _output_folder(journal):
        pytest.fail("it began")
    assert secret.read_text() == "of the caller\n"
    assert (secret.stat().st_uid, secret.stat().st_ctime_ns) == (before.st_uid, before.st_ctime_ns)
    assert not (tmp_path / "nowhere").exists()
    assert not folder.exists()


def plant(path: Path, secret: Path, kind: str) -> None:
    """Replace the file by a link to the secret, a hard link, a pipe, or another kind."""
    path.unlink()
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "hard link":
        path.hardlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
