"""The signing key of this machine is written completely or not at all, and faults of a key come with advice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfdet.base.errors import DataError, ExitCode, UsageError
from tfdet.store import signing_key


def test_a_full_disk_leaves_no_partial_key(tmp_path: Path) -> None:
    """A file size limit simulates the full disk: the partial file is removed, and a second try succeeds."""
    path = tmp_path / "config" / "key.pem"
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20)); from tfdet.cli.main import main; main()"
    )
    environ = {**os.environ, "TFDET_KEY": str(path)}
    done = subprocess.run([sys.executable, "-c", code, "key", "new"], env=environ, capture_output=True, text=True)
    assert done.returncode == ExitCode.RUN_FAILED and "Traceback" not in done.stderr and str(path) in done.stderr
    assert list(path.parent.iterdir()) == []
    done = subprocess.run([sys.executable, "-m", "tfdet", "key", "new"], env=environ, capture_output=True, text=True)
    assert done.returncode == ExitCode.OK and path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"", b"\n", b"-----BEGIN PRIVATE KEY-----\n"])
def test_a_damaged_key_is_reported_with_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(content)
    path.chmod(0o600)
    monkeypatch.setenv("TFDET_KEY", str(path))
    for ask in (signing_key.generate, signing_key.load, signing_key.require):
        with pytest.raises(DataError) as caught:
            ask()
        assert str(path) in caught.value.cause and "then: tfdet key new" in caught.value.advice
    assert path.read_bytes() == content


def test_a_key_never_replaces_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A key that another process makes at the same time is kept, too."""
    path = tmp_path / "key.pem"
    monkeypatch.setenv("TFDET_KEY", str(path))
    monkeypatch.setattr(os, "fsync", lambda number: path.write_text("another"))
    with pytest.raises(UsageError, match="a key is there already"):
        signing_key.generate()
    assert path.read_text() == "another" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("is_key_there", [True, False])
def test_what_a_killed_process_left_is_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_key_there: bool
) -> None:
    """The process was killed behind or before the link that names the key: the file may be the key itself."""
    path, part = tmp_path / "key.pem", tmp_path / "key.pem.part"
    monkeypatch.setenv("TFDET_KEY", str(path))
    if is_key_there:
        signing_key.generate()
        content = path.read_bytes()
        os.link(path, part)
        with pytest.raises(UsageError):
            signing_key.generate()
        assert path.read_bytes() == content
    else:
        part.write_bytes(b"-----BEGIN")
        signing_key.generate()
    assert list(tmp_path.iterdir()) == [path] and signing_key.load() is not None
