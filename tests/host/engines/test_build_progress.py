"""Progress while an environment is made: uv's lines, Docker's pull, and which other run it waits for."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from filelock import FileLock

from tfdet.engines import images, venv
from tfdet.matrix.models import PipRequirements

# A fake uv: unless it is told to be quiet, it reports a download as the real one does, and waits until that was seen.
UV = """#!/bin/sh
case "$*" in *--quiet*) exit 0;; esac
echo "Downloading tensorflow (500.0MiB)" >&2
for i in $(seq 300); do [ -e {seen} ] && break; sleep 0.1; done
[ -e {seen} ] || exit 1
echo " + tensorflow==2.21.0" >&2
"""


class Watched:
    """Standard error; the file `log` exists as soon as a download was reported."""

    def __init__(self, log: Path) -> None:
        self.written = ""
        self._log = log

    def write(self, text: str) -> None:
        self.written += text
        if "Downloading" in self.written:
            self._log.touch()

    def flush(self) -> None:
        pass


def test_progress_of_uv_is_shown_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "seen"
    uv = tmp_path / "uv"
    uv.write_text(UV.format(seen=log))
    uv.chmod(0o755)
    watched = Watched(log)
    monkeypatch.setattr(venv, "find_uv_bin", lambda: str(uv))
    monkeypatch.setattr(venv.sys, "stderr", watched)
    monkeypatch.setattr(venv.shutil, "rmtree", lambda path, ignore_errors: path.mkdir())  # uv would make it
    pip = PipRequirements(python="3.11", cpu="tensorflow-cpu==2.21.0", gpu="tensorflow==2.21.0")
    venv._build(tmp_path / "made", tmp_path / "python", pip, tmp_path / "tf2.21-cpu.txt", "")
    assert "Downloading tensorflow (500.0MiB)" in watched.written
    assert " + " not in watched.written, "the lock file says that"


def test_waiting_for_another_build_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = FileLock(f"{tmp_path / 'tf2.0-cpu-12'}.lock")
    other.acquire()
    is_waiting = threading.Event()

    class Told(Watched):
        def write(self, text: str) -> None:
            if "waiting for another tfdet that builds tf2.0-cpu-12" in text:
                is_waiting.set()

    monkeypatch.setattr(venv.sys, "stderr", Told(tmp_path / "seen"))
    with venv.exclusive_lock(tmp_path / "tf2.21-cpu-12"):
        pass  # another environment is no reason to wait
    assert not is_waiting.is_set()

    def wait() -> None:
        with venv.exclusive_lock(tmp_path / "tf2.0-cpu-12"):
            pass

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert is_waiting.wait(30)
    other.release()
    waiting.join(30)
    assert not waiting.is_alive()


def test_the_progress_of_a_pull_is_one_line() -> None:
    messages: list[str] = []
    now = [0.0]
    log = images._Log(messages.append, clock=lambda: now[0])
    for second in range(12):
        now[0] = float(second)
        for layer, total in (("a", 100 << 20), ("b", 300 << 20)):
            detail = {"current": second << 20, "total": total}
            log.add({"status": "Downloading", "progress": "[=> ]", "progressDetail": detail, "id": layer})
    assert messages[-1] == "pulled 19 of 400 MiB so far"
    assert len(messages) == 3
    log.add({"status": "Extracting", "progress": "[=> ]", "id": "a"})
    log.add({"status": "Pull complete", "id": "a"})
    assert messages[3:] == ["a Pull complete"]
