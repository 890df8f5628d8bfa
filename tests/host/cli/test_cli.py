"""The command line in a shell: exit codes, closed pipes, limited encodings, unusual text."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tfdet.base import console
from tfdet.base.errors import ExitCode, RunFailedError, TfdetError
from tfdet.base.paths import Project
from tfdet.cli.main import app
from tfdet.engines.base import Selection
from tfdet.engines.run import RunResult
from tfdet.publish.terminal_views import verdict_text
from tfdet.store.cases import current_hashes
from tfdet.store.records import parse
from tfdet.verdicts.infer import InferredCell, Verdict


def shell(project: Project, line: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which `tfdet` is the command."""
    environ = {**os.environ, "TFDET_ROOT": str(project.root), **changes}
    prelude = f'tfdet() {{ exec "{sys.executable}" -m tfdet "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", prelude + line], env=environ, cwd=project.root, capture_output=True, text=True, timeout=120
    )


def run_tfdet(project: Project, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `python -m tfdet` on the project."""
    return subprocess.run(
        [sys.executable, "-m", "tfdet", *map(str, arguments)],
        env={**os.environ, "TFDET_ROOT": str(project.root)},
        cwd=project.root,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_an_uncaught_exception_prints_a_traceback_and_exits_3(checkout: Project) -> None:
    """The exit code is RUN_FAILED, 3."""
    code = (
        "import sys; from tfdet.cli import environments, main; environments.find_project = lambda: 1 / 0;"
        "sys.argv = ['tfdet', 'envs']; main.main()"
    )
    done = shell(checkout, f'"{sys.executable}" -c "{code}"')
    assert done.returncode == ExitCode.RUN_FAILED
    assert "ZeroDivisionError" in done.stderr
    assert "internal error of tfdet: please report it" in done.stderr


@pytest.mark.parametrize(
    "command", ["envs --json", "envs", "status", "show tf2.0 crop-and-resize-backprop", "recipe tf2.0", "--help"]
)
def test_a_closed_pipe_does_not_exit_like_a_contradiction(checkout: Project, command: str) -> None:
    done = shell(checkout, f"(tfdet {command}) | true; echo ${{PIPESTATUS[0]}}")
    assert done.stdout == "141\n", done
    assert done.stderr == ""


def test_piping_into_head_prints_one_line(checkout: Project) -> None:
    done = shell(checkout, "(tfdet envs --json) | head -1; echo ${PIPESTATUS[0]}")
    assert done.stdout.splitlines() in (["[", "141"], ["[", "0"])
    assert done.stderr == ""


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams(checkout: Project, closed: str) -> None:
    for command in ("envs", "envs --json", "recipe tf2.0"):
        done = shell(checkout, f"tfdet {command} {closed}")
        assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_is_reported(checkout: Project) -> None:
    done = shell(checkout, "tfdet envs > /dev/full")
    assert done.returncode == ExitCode.RUN_FAILED
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert "records are kept" not in done.stderr


def test_output_in_an_encoding_without_the_table_characters(checkout: Project) -> None:
    done = shell(checkout, "tfdet status --all", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "?" in done.stdout
    poor, rich = (shell(checkout, "tfdet envs --json", PYTHONIOENCODING=name).stdout for name in ("ascii", "utf-8"))
    assert json.loads(poor) == json.loads(rich)


def test_markup_in_a_record_is_text(copy: Project, record_line: Callable[..., bytes]) -> None:
    error = {"kind": "crashed", "type": "Fault", "message": "[/nope] [bold]", "where": None}
    store_records(copy, record_line("crashed", error=error))
    done = run_tfdet(copy, "show", "tf2.0", "bias-add-backprop")
    assert done.returncode == 0, done.stderr
    assert "[/nope] [bold]" in done.stdout


def store_records(project: Project, *lines: bytes) -> None:
    """Write the lines as the project's only CPU records of tf2.0."""
    path = project.evidence / "cpu" / "tf2.0.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))


def test_no_control_characters_and_no_endless_lines(capsys: pytest.CaptureFixture[str]) -> None:
    nasty = "a\x1b[31mb\x07\r\x9b2J[/red]:smile:\nnext " + "x" * 600
    for print_message in (console.print_note, lambda text: console.print_error(TfdetError(text, text))):
        print_message(nasty)
        printed = capsys.readouterr().err
        assert not [c for c in printed if c != "\n" and (c < " " or "\x7f" <= c <= "\x9f")]
        assert "a[31mb2J[/red]:smile:\nnext" in printed
        assert max(map(len, printed.splitlines())) < 520


@pytest.mark.parametrize("seconds", ["nan", "inf", "86401", "0"])
def test_a_timeout_is_a_number_of_seconds(checkout: Project, seconds: str) -> None:
    done = run_tfdet(checkout, "run", "tf2.21", "--device", "cpu", "--timeout", seconds)
    assert done.returncode == ExitCode.USAGE
    assert "timeout" in done.stderr


def test_a_failed_environment_does_not_keep_the_next_from_running(
    checkout: Project, record_line: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    records = [parse(record_line(environment=key)) for key in ("tf2.0", "tf2.21")]

    def run_environment(project: Project, matrix: object, key: str, *rest: Any) -> RunResult:
        if key == "tf1.15":
            raise RunFailedError("no CPython 3.7 on this machine")
        if key == "tf1.14":
            raise PermissionError(13, "Permission denied", "/there")
        return RunResult(ExitCode.CONTRADICTED, records, None)

    monkeypatch.setattr("tfdet.engines.run.run_environment", run_environment)
    monkeypatch.setenv("TFDET_ROOT", str(checkout.root))
    out = str(tmp_path / "all.jsonl")
    done = CliRunner().invoke(app, ["run", "tf1.15", "tf1.14", "tf2.0", "tf2.21", "--json", "--out", out])
    assert done.exit_code == ExitCode.RUN_FAILED
    assert "no CPython 3.7" in done.stderr
    assert "/there: Permission denied\n  Finished records are kept." in done.stderr
    assert [json.loads(text)["environment"] for text in done.stdout.splitlines()] == ["tf2.0", "tf2.21"]
    assert CliRunner().invoke(app, ["run", "tf2.0", "--json", "--out", out]).exit_code == ExitCode.CONTRADICTED


def test_status_of_one_record_file(copy: Project, record_line: Callable[..., bytes], tmp_path: Path) -> None:
    case_hash = min(current_hashes(copy)["bias-add-backprop"])
    store_records(copy, record_line("differs", case_hash=case_hash))
    own_records = tmp_path / "mine.jsonl"
    own_records.write_bytes(record_line(case_hash=case_hash, machine="1" * 12))

    def verdict(*arguments: str | Path) -> str:
        cells = json.loads(run_tfdet(copy, "status", "--json", "--records", own_records, *arguments).stdout)["cells"]
        (cell,) = [c for c in cells if (c["environment"], c["device"]) == ("tf2.0", "cpu")
                   and c["source"] == "bias-add-backprop" and c["solution"] == "none"]  # fmt: skip
        return str(cell["verdict"])

    assert verdict() == "nondeterministic"
    assert verdict("--no-store") == "not shown to differ"


def test_show_names_sass_or_ptx(copy: Project, record_line: Callable[..., bytes]) -> None:
    details = {"reference": "serial", "schedules": [], "sources": "0" * 12, "code": ["ptx", "sass"]}
    device = {"kind": "vgpu", "model": "vgpu-sm70", "details": details}
    path = copy.root / "records.jsonl"
    path.write_bytes(
        record_line(device=device, ran_on=["GPU:0"], case_hash=min(current_hashes(copy)["bias-add-backprop"]))
    )
    assert run_tfdet(copy, "evidence", "add", "--yes", path).returncode == 0
    lines = run_tfdet(copy, "show", "tf2.0", "bias-add-backprop").stdout.splitlines()
    assert any(" GPU:0 ptx sass " in " ".join(row.split()) for row in lines)


@pytest.mark.parametrize(
    "arguments", [["--no-store"], ["--environment", "tf2.0", "--check"], ["--environment", "tf2.0", "--write"]]
)
def test_options_of_status_that_do_not_go_together(copy: Project, arguments: list[str]) -> None:
    done = run_tfdet(copy, "status", *arguments)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert "Traceback" not in done.stderr


def test_contradictions_are_reported_although_a_table_is_out_of_date(
    copy: Project, record_line: Callable[..., bytes]
) -> None:
    code = min(current_hashes(copy)["bias-add-backprop"])
    path = copy.matrix / "sources" / "tensorflow" / "bias-add-backprop.toml"
    claim = 'stock = "==2.0"\ndevice = "cpu"\nsolutions = ["none"]\noutcome = "deterministic"\ncite = ["x"]\n'
    path.write_text(f"{path.read_text('utf-8')}\n[[claims]]\n{claim}", "utf-8")
    store_records(copy, record_line("differs", case_hash=code))
    done = run_tfdet(copy, "status", "--check")
    assert done.returncode == ExitCode.CONTRADICTED
    assert "contradiction: bias-add-backprop under none in tf2.0 on cpu" in done.stderr
    assert "--write" in done.stderr


def test_a_proof_shows_its_number_of_cases() -> None:
    cell = InferredCell(Verdict.DETERMINISTIC, runs=40, controls_differed=2, cases=3)
    assert str(verdict_text(cell)).endswith("2 of 3 cases' control differed")


def fake_quickstart(checkout: Project, folder: Path, bootstrap: str, python: str) -> Path:
    """Copy quickstart to a folder where the other programs are these shell scripts and `tfdet` fails; return it."""
    fakes = {
        "scripts/bootstrap": f"[ $# = 0 ] || exec echo .venv/bin/python\n{bootstrap}",
        ".venv/bin/python": python,
        ".venv/bin/tfdet": 'echo "$@"; exit 4',
    }
    for name, text in fakes.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)
    for name in ("quickstart", "quickstart-tensorflow", "quickstart-torch"):
        shutil.copy(checkout.root / "scripts" / name, folder / "scripts")
    return folder / "scripts" / "quickstart"


@pytest.mark.parametrize(
    ("option", "ran"),
    [
        ([], ["tf2.21 cpu", "tf2.15 vgpu"]),
        (["--full"], ["tf2.21 cpu"]),
        (["--framework", "torch"], ["torch2.13 cpu", "torch2.14 vgpu"]),
    ],
)
def test_quickstart_always_ends_with_the_next_steps(
    checkout: Project, tmp_path: Path, option: list[str], ran: list[str]
) -> None:
    """This holds where a run ends with exit code 4, too."""
    script = fake_quickstart(checkout, tmp_path, bootstrap="", python="")
    done = subprocess.run([script, *option], capture_output=True, text=True, timeout=300)
    columns = [line.split() for line in done.stdout.splitlines()]
    assert [f"{words[1]} {words[5]}" for words in columns if words[:1] == ["run"]] == ran
    end = done.stdout.splitlines()[-10:]
    assert any(line.startswith("Next") for line in end)
    assert max(map(len, end)) <= 80
    (page,) = re.findall(r"Page: (\S+)", "\n".join(end))
    assert (checkout.root / page).is_file()
    assert (done.returncode, done.stderr) == (4, "")


@pytest.mark.parametrize("option", [["--full", "--framework", "torch"], ["--framework", "tensorflow,"], ["--quick"]])
def test_quickstart_refuses_other_options(checkout: Project, tmp_path: Path, option: list[str]) -> None:
    script = fake_quickstart(checkout, tmp_path, bootstrap="", python="")
    done = subprocess.run([script, *option], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")


def test_bootstrap_finds_the_python_of_its_environment_first(checkout: Project, tmp_path: Path) -> None:
    """quickstart needs no other one on the PATH, once there is an environment."""
    fake_quickstart(checkout, tmp_path, bootstrap="", python="")
    script = shutil.copy(checkout.root / "scripts" / "bootstrap", tmp_path / "scripts")
    done = subprocess.run([script, "--find-python"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, ".venv/bin/python\n")


def test_an_interrupted_quickstart_ends_its_compilers(checkout: Project, tmp_path: Path) -> None:
    python = "sleep 300 & echo $! > compiler; wait"
    script = fake_quickstart(checkout, tmp_path, bootstrap="sleep 300", python=python)
    compiler = tmp_path / "compiler"
    with subprocess.Popen([script], stdout=subprocess.DEVNULL, start_new_session=True) as process:
        while not (compiler.exists() and compiler.read_text()):
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
    state = Path(f"/proc/{compiler.read_text().strip()}/stat")
    for _ in range(100):
        if not state.exists() or state.read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("a compiler runs on")


def test_the_version_is_reported(checkout: Project) -> None:
    done = run_tfdet(checkout, "--version")
    assert (done.returncode, done.stdout) == (0, f"tfdet {metadata.version('tfdet')}\n")


@pytest.mark.parametrize(
    ("typed", "among"),
    [
        ("tfdet recipe tf2.2", {"tf2.2", "tf2.20", "tf2.21"}),
        ("tfdet build tf2.0 ngc22.03-", {"ngc22.03-tf1", "ngc22.03-tf2"}),
        ("tfdet show tf2.0 gather", {"gather-backprop"}),
        ("tfdet run tf2.0 --source bias-add", {"bias-add-backprop"}),
        ("tfdet run tf2.0 --solution TDO", {"TDO", "TDO-FE"}),
        ("tfdet status --environment tf1.15", {"tf1.15", "tf1.15.5", "tf1.15-horovod"}),
        ("tfdet status --device vgpu-sm", {"vgpu-sm70", "vgpu-sm80", "vgpu-sm90"}),
        ("tfdet status --device c", {"cpu"}),
        ("tfdet status --verdict nond", {"nondeterministic"}),
        ("tfdet status --framework t", {"tensorflow", "torch"}),
        ("tfdet audit tf1.13", {"tf1.13.1"}),
        ("tfdet recipe [", set()),
    ],
)
def test_a_shell_completes_names(checkout: Project, typed: str, among: set[str]) -> None:
    environ = {**os.environ, "TFDET_ROOT": str(checkout.root), "_TFDET_COMPLETE": "complete_bash"}
    environ |= {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    command = [Path(sys.executable).with_name("tfdet")]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert (set(done.stdout.split()), done.stderr) == (among, "")


def test_outside_of_a_checkout_nothing_is_completed(tmp_path: Path) -> None:
    environ = {**os.environ, "TFDET_ROOT": str(tmp_path), "_TFDET_COMPLETE": "complete_bash"}
    environ |= {"COMP_WORDS": "tfdet recipe tf", "COMP_CWORD": "2"}
    command = [Path(sys.executable).with_name("tfdet")]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_an_environment_for_the_cpu_only_runs_there_by_default(
    checkout: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = []

    def run_environment(project: Project, matrix: object, key: str, selection: Selection, *rest: Any) -> RunResult:
        devices.append((key, selection.device))
        return RunResult(ExitCode.OK, [], None)

    monkeypatch.setattr("tfdet.engines.run.run_environment", run_environment)
    monkeypatch.setenv("TFDET_ROOT", str(checkout.root))
    requests = [
        "run",
        "--json",
        "tf2.0-horovod",
        "torch2.14",
        "--source",
        "horovod-tensor-fusion",
        "--source",
        "torch-index-add",
    ]
    for words in (requests, [*requests, "--device", "gpu"]):
        assert CliRunner().invoke(app, words).exit_code == ExitCode.OK
    assert devices == [("tf2.0-horovod", "cpu"), ("torch2.14", "gpu"), ("tf2.0-horovod", "gpu"), ("torch2.14", "gpu")]
