"""`tfdet run` as a user calls it: missing requirements, Ctrl-C, two runs at once, --json."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import weekly
from signers import Signer

from tfdet.base.errors import ExitCode
from tfdet.base.paths import Project
from tfdet.engines.base import container_path
from tfdet.engines.run import _journal, _recover_orphaned_journals
from tfdet.store.records import parse, read_records
from tfdet.store.signatures import bundle_path

# Arguments of a short run; TWO: with two solutions only, the control and TensorFlow's enable_op_determinism().
FEW = ["--source", "reduce-sum", "--source", "bias-add-backprop", "--repeats", "3", "--processes", "1"]
TWO = ["--solution", "none", "--solution", "TEOD"]  # each takes a process of its own


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "tfdet", "run", *map(str, arguments)]


def environ(project: Project, **changes: str) -> dict[str, str]:
    return {**os.environ, "TFDET_ROOT": str(project.root), **changes}


def run_tfdet(project: Project, *arguments: str | Path, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        env=environ(project, **changes),
        cwd=project.root,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_missing_interpreter_is_reported_with_advice(copy: Project, tmp_path: Path) -> None:
    done = run_tfdet(copy, "tf2.0", "--device", "cpu", PATH="/nowhere", HOME=str(tmp_path), PYENV_ROOT=str(tmp_path),
               XDG_CACHE_HOME=str(tmp_path))  # fmt: skip
    assert done.returncode == ExitCode.RUN_FAILED
    assert "tfdet: no CPython 3.7 on this machine\n  Install CPython 3.7" in done.stderr
    assert not list((tmp_path / "tfdet" / "venvs").glob("*/"))


def test_a_broken_lock_is_reported_before_anything_is_installed(copy: Project, tmp_path: Path) -> None:
    copy.lock("tf2.0", "cpu").write_text("tensorflow==2.0.0\n")
    done = run_tfdet(copy, "tf2.0", "--device", "cpu", XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == ExitCode.USAGE
    assert "tf2.0-cpu.txt:1:" in done.stderr
    assert not (tmp_path / "tfdet" / "venvs").exists()


def test_an_image_cannot_be_a_venv(checkout: Project) -> None:
    done = run_tfdet(checkout, "ngc19.06-py3", "--engine", "venv", "--device", "cpu")
    assert done.returncode == ExitCode.USAGE
    assert "--engine docker" in done.stderr
    assert run_tfdet(checkout, "ngc19.06-py3", "--engine", "venv").returncode == ExitCode.USAGE, "with or without a GPU"


@pytest.mark.tensorflow
def test_json_is_records_on_standard_output_and_text_on_standard_error(
    checkout: Project, tf_python: Callable[[str], Path], tmp_path: Path
) -> None:
    tf_python("tf2.21")
    done = run_tfdet(checkout, "tf2.21", "--device", "cpu", *FEW, *TWO, "--json", "--out", tmp_path / "r.jsonl")
    assert done.returncode == 0, done.stderr
    records = [parse(line.encode()) for line in done.stdout.splitlines()]
    assert {record.source for record in records} == {"reduce-sum", "bias-add-backprop"}
    assert "tf2.21 on the cpu" in done.stderr


@pytest.mark.tensorflow
@pytest.mark.parametrize("trusted_for", weekly.select_for_today(["nvidia", "cpu", None]))
def test_records_in_a_file_are_signed_unless_the_key_is_not_trusted_for_them(
    copy: Project, tf_python: Callable[[str], Path], tmp_path: Path, trusted_for: str | None
) -> None:
    tf_python("tf2.21")
    lab = Signer("lab")
    if trusted_for:
        lab.trust_in(copy, trusted_for)
    key, out = tmp_path / "key.pem", tmp_path / "records.jsonl"
    key.write_bytes(lab.private_pem)
    key.chmod(0o600)
    arguments_of_few = ["--source", "reduce-sum", "--case", "*eager", *TWO, "--repeats", "2", "--processes", "1"]
    done = run_tfdet(copy, "tf2.21", "--device", "cpu", *arguments_of_few, "--out", out, TFDET_KEY=str(key))
    assert done.returncode == 0, done.stderr
    assert bundle_path(out).exists() == (trusted_for != "nvidia")
    assert ("kept as unsigned: the key lab is not trusted for cpu" in done.stderr) == (trusted_for == "nvidia")
    assert "reduce-sum" in done.stdout, "signed for another repository, or unsigned: they count as unsigned"


# A suite whose case waits for a file, so that a run can be interrupted then. GATES: several such cases.
GATE = """
import os
import time
import numpy as np
from tfdet_probe import case


@case("reduce-sum", modes=("host",))
def gate(make):
    while not os.path.exists(OPEN):
        time.sleep(0.05)
    return make.host(lambda: [np.zeros(1)])
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize("how", weekly.select_for_today(["ctrl-c", "sigterm under nohup"]))
def test_an_interrupted_run_keeps_finished_records_and_running_again_goes_on(
    copy: Project, tf_python: Callable[[str], Path], tmp_path: Path, how: str
) -> None:
    tf_python("tf2.21")
    shutil.rmtree(copy.evidence)  # more runs than these few are there, and would stay
    opened = tmp_path / "open"
    # Collected after the cases of test_bias.py and before those of test_reduce.py: it waits, so the run cannot end.
    (copy.suite("tensorflow") / "test_gate.py").write_text(GATE.replace("OPEN", repr(str(opened))))
    arguments = command("tf2.21", "--device", "cpu", *FEW, *TWO)
    nohup = (lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if "nohup" in how else None
    process = subprocess.Popen(
        arguments, env=environ(copy), cwd=copy.root, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=nohup,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("[3/"):
            break
    if how == "ctrl-c":
        os.killpg(process.pid, signal.SIGINT)  # a terminal tells all
    else:
        process.send_signal(signal.SIGTERM)
    stuck = threading.Timer(300, os.killpg, (process.pid, signal.SIGKILL))  # a probe left behind keeps the pipe open
    stuck.start()
    rest = process.stderr.read()
    stuck.cancel()
    assert process.wait(timeout=300) == ExitCode.INTERRUPTED, rest
    assert "running again resumes" in rest  # the advice, no traceback
    assert not remaining_processes(process.pid)
    (journal,) = copy.journals.glob("*/records.jsonl")
    finished = len(list(read_records(journal)))
    assert finished >= 3
    opened.touch()
    second_run = run_tfdet(copy, *arguments[4:])
    assert second_run.returncode == 0, second_run.stderr
    total = int(second_run.stderr.split(" records added")[0].rsplit(maxsplit=1)[-1])
    assert total > finished
    assert f"[1/{total - finished}]" in second_run.stderr
    assert not list(copy.journals.glob("*/records.jsonl"))


def remaining_processes(session: int) -> list[str]:
    """Return the processes of a session that still run after a grace period."""
    end = time.monotonic() + 60
    while True:
        done = subprocess.run(["ps", "-o", "pid=,args=", "-s", str(session)], capture_output=True, text=True)
        if not done.stdout or time.monotonic() > end:
            return done.stdout.splitlines()
        time.sleep(0.1)


GATES = (
    GATE.replace("modes", "n=[0, 1, 2, 3], modes").replace("(make)", "(make, n)").replace("while", "while n > 1 and")
)


@pytest.mark.tensorflow
@pytest.mark.parametrize("destination", weekly.select_for_today(["store", "out"]))
def test_after_sigkill_no_process_writes_and_no_run_counts_twice(
    copy: Project, tf_python: Callable[[str], Path], tmp_path: Path, destination: str
) -> None:
    tf_python("tf2.21")
    opened = tmp_path / "open"
    for folder in (copy.evidence, copy.suite("tensorflow")):
        shutil.rmtree(folder)
    copy.suite("tensorflow").mkdir()
    (copy.suite("tensorflow") / "test_gate.py").write_text(GATES.replace("OPEN", repr(str(opened))))
    arguments_of_few = ["tf2.21", "--device", "cpu", *FEW, "--solution", "none"]
    arguments_of_few += ["--out", str(tmp_path / "r.jsonl")] if destination == "out" else []
    process = subprocess.Popen(
        command(*arguments_of_few),
        env=environ(copy),
        cwd=copy.root,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("[1/"):
            break
    process.kill()
    process.wait()
    second = subprocess.Popen(
        command(*arguments_of_few), env=environ(copy), cwd=copy.root, stderr=subprocess.PIPE, text=True
    )
    assert not remaining_processes(process.pid)
    opened.touch()
    assert second.communicate(timeout=300)[1] and second.returncode == 0
    paths = [tmp_path / "r.jsonl"] if destination == "out" else list(copy.evidence.glob("*/*.jsonl"))
    records = [record for path in paths for record in read_records(path)]
    assert len({record.key for record in records}) == len(records) == 4
    assert not list(copy.journals.glob("*/records.jsonl"))


def test_a_journal_that_a_container_still_writes_is_no_one_elses(
    copy: Project, record_line: Callable[..., bytes]
) -> None:
    """A container outlives a killed tfdet, whose lock on the journal is then released."""
    path = container_path(copy.journals / "tf2.0-cpu-0" / "records.jsonl")
    path.parent.mkdir(parents=True)
    path.write_bytes(record_line())
    holder = "import sys; from tfdet_common.journal import Journal; j = Journal(sys.argv[1], exclusive=True); "
    child = subprocess.Popen(
        [sys.executable, "-c", holder + "print('held', flush=True); sys.stdin.read()", str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    with _journal(copy, "tf2.0-cpu", None) as journal:
        assert journal.parent.name == "tf2.0-cpu-1"
    child.communicate()
    with _journal(copy, "tf2.0-cpu", None) as journal:
        assert journal.parent.name == "tf2.0-cpu-0"


def test_two_runs_never_write_into_one_file(checkout: Project, tmp_path: Path) -> None:
    import filelock

    out = tmp_path / "r.jsonl"
    with filelock.FileLock(f"{out}.lock"):
        done = run_tfdet(checkout, "tf2.21", "--device", "cpu", "--out", out)
    assert done.returncode == ExitCode.USAGE
    assert "another run is writing" in done.stderr


def test_an_out_file_that_holds_something_else_is_left_alone(
    checkout: Project, tf_python: Callable[[str], Path], tmp_path: Path
) -> None:
    tf_python("tf2.21")
    out = tmp_path / "notes.txt"
    out.write_text("my notes\n")
    done = run_tfdet(checkout, "tf2.21", "--device", "cpu", *FEW, *TWO, "--out", out)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert out.read_text() == "my notes\n"
    assert json.dumps("notes.txt")[1:-1] in done.stderr


def test_an_out_file_that_cannot_be_kept_is_wrong_usage(checkout: Project, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for out in (tmp_path / "file" / "deeper" / "r.jsonl", tmp_path):
        done = run_tfdet(checkout, "tf2.21", "--device", "cpu", "--out", out)
        assert done.returncode == ExitCode.USAGE, done.stderr
        assert f"--out {out}" in done.stderr


def test_records_left_beside_the_journal_are_added(copy: Project, record_line: Callable[..., bytes]) -> None:
    import filelock

    def strand(folder: str, content: bytes) -> Path:
        path = copy.journals / folder / "records.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        return path

    torn = strand("tf2.0-cpu-3", record_line(machine="3" * 12) + record_line()[:100])
    busy = strand("tf2.0-cpu-4", record_line(machine="4" * 12))
    other = strand("tf2.0-gpu-0", record_line(machine="5" * 12))
    with filelock.FileLock(busy.parent / "lock"):
        _recover_orphaned_journals(copy, "tf2.0-cpu")
    assert [path.exists() for path in (torn, busy, other)] == [False, True, True]
    store = copy.evidence / "cpu" / "tf2.0.jsonl"
    machines = {record.machine for record in read_records(store)}
    assert "3" * 12 in machines
    assert not {"4" * 12, "5" * 12} & machines
