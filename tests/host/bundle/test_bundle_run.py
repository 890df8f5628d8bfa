"""Execute docs/how-to/run-without-network.md: a real TensorFlow is carried to a folder without network and back."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import weekly

from tfdet.base.paths import Project
from tfdet.engines.interpreters import find_python
from tfdet.matrix.load import load_matrix
from tfdet.matrix.plan import write_plan
from tfdet.store.records import Record, read_records

GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "run-without-network.md"
BLOCK = re.compile(r"^```console at=(?P<place>home|host)\n(?P<text>.*?)^```", re.M | re.S)


def steps() -> list[tuple[str, list[str]]]:
    """Return (machine, arguments) of every command in the guide's example; the machine is `home` or `host`."""
    return [
        (block["place"], shlex.split(line.removeprefix("$ ")))
        for block in BLOCK.finditer(GUIDE.read_text("utf-8"))
        for line in block["text"].splitlines()
    ]


def without_network() -> list[str]:
    """Return the command prefix that enters a network namespace without network; empty where that is not allowed."""
    for prefix in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
        try:
            if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
                return prefix
        except OSError:
            break
    return []


def run_at_home(project: Project, arguments: list[str], folder: Path) -> None:
    """Run `python -m ...` on the machine with network."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder, env={**os.environ, "TFDET_ROOT": str(project.root)}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def run_at_host(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command on the machine without network, in an almost empty environment."""
    python = find_python(arguments[0].removeprefix("python"))
    assert python is not None
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    return subprocess.run(
        [*without_network(), str(python), *arguments[1:]],
        cwd=folder, env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **nowhere}, capture_output=True, text=True,
        timeout=600,
    )  # fmt: skip


def run_untrimmed(project: Project, python: Path, out: Path) -> list[Record]:
    """Run the same cells in a virtual environment of the same, untrimmed packages; return the records."""
    plan = write_plan(load_matrix(project.matrix), "tf1.14", out.with_suffix(".plan"))
    suite = str(project.suite("tensorflow"))
    command = [str(python), "-m", "tfdet_probe", "--plan", str(plan), "--suite", suite, "--out", str(out)]
    command += ["--device", "cpu", "--source", "reduce-sum", "--solution", "TDO"]
    done = subprocess.run(
        command, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(project.runtime)}, capture_output=True, text=True,
        timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return list(read_records(out))


@weekly.on_day(3)
@pytest.mark.tensorflow
def test_the_guides_commands_run_without_network(
    copy: Project, tf_python: Callable[[str], Path], tmp_path: Path
) -> None:
    python = tf_python("tf1.14")  # skips where there is no CPython for it
    shutil.rmtree(copy.evidence)
    home, host = tmp_path / "home", tmp_path / "host"
    home.mkdir()
    host.mkdir()
    for machine, arguments in steps():
        if machine == "home":
            if (host / "records.jsonl").exists():
                shutil.copy(host / "records.jsonl", home)
            run_at_home(copy, arguments, home)
            continue
        if not (host / "carried").exists():
            shutil.move(home / "carried", host / "carried")
        done = run_at_host(arguments, host)
        assert done.returncode == 0, done.stderr
    records = list(read_records(host / "records.jsonl"))
    assert {r.solution for r in records} == {"none", "TDO"}, "the control came along"
    carried = records[0].stack.bundle
    assert carried is not None
    assert {r.stack.engine for r in records} == {"bundle"}
    assert all(r.stack.bundle == carried for r in records)
    assert any(text.startswith("symbol and debug tables") for text in carried.trimmed)
    assert "headers and static libraries" in carried.left_out
    untrimmed_records = run_untrimmed(copy, python, tmp_path / "untrimmed.jsonl")
    assert {(r.case, r.solution): r.digests for r in records} == {
        (r.case, r.solution): r.digests for r in untrimmed_records
    }
    assert list(read_records(copy.evidence / "cpu" / "tf1.14.jsonl")) == sorted(records, key=lambda r: r.key)
    assert_faults_are_reported(host)


def assert_faults_are_reported(host: Path) -> None:
    """Check the errors of the real bundle for a flipped bit and for a missing GPU."""
    for unpacked in (host / "carried").glob("unpacked-*"):
        shutil.rmtree(unpacked) if unpacked.is_dir() else unpacked.unlink()
    done = run_at_host(["python3.7", "carried/unbundle.py", "run", "--device", "gpu"], host)
    assert done.returncode == 4
    part = sorted((host / "carried").glob("*.part-*"))[1]
    with part.open("r+b") as file:
        file.seek(1000)
        byte = file.read(1)
        file.seek(1000)
        file.write(bytes([byte[0] ^ 1]))
    done = run_at_host(["python3.7", "carried/unbundle.py", "run", "--device", "cpu"], host)
    assert done.returncode == 2
    assert f"{part.name} has changed" in done.stderr
    assert not [path for path in (host / "carried").iterdir() if path.is_dir()]
