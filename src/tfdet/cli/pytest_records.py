"""The records of a test module's cases, for `pytest --tfdet`.

The probe runs the cases once per session, even if several processes of pytest-xdist run the tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from tfdet.base.errors import RunFailedError, from_os_error

if TYPE_CHECKING:
    from tfdet.store.records import Record

_COMPLETED = (0, 1, 3)  # exit codes of the probe: as claimed, a contradicted claim, a failed case
_END_TIMEOUT = 10.0  # seconds in which the probe must end its cases


def records_path(root: Path, module: Path) -> Path:
    """Return the relative path of a module's records: that of the module in the project, which is unique."""
    inside = module.relative_to(root if module.is_relative_to(root) else module.anchor)
    return inside.with_suffix(".jsonl")


@dataclass(frozen=True)
class ModuleRun:
    """The settings for the probe's run of one module.

    records: the relative path of its records.  out_folder: the user's folder for records, if any.  arguments: of the
    probe.  plan: its input: the sources of nondeterminism and the solutions under which their cases run.
    """

    records: Path
    out_folder: Path | None
    plan: dict[str, Any]
    arguments: Sequence[str]
    environ: dict[str, str]
    cwd: Path


def run_once(shared: Path, run: ModuleRun) -> list[Record]:
    """Return the module's records in the folder `shared`, and run its cases if no other process of the session has.

    While another process runs them, wait for it. RunFailedError if the run failed.
    """
    from tfdet.store.records import read_records

    records = shared / run.records
    failure = records.with_suffix(".failed")
    records.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{records}.lock"):
        if not records.exists() and not failure.exists():
            _run_and_publish(run, records, failure)
    if failure.exists():
        raise RunFailedError(failure.read_text("utf-8"))
    return list(read_records(records))


def find_refusal(shared: Path, records: Path, source: str) -> str | None:
    """Return the probe's message about the cases of a source that it did not run; None if there is none."""
    log = (shared / records).with_suffix(".log").read_text("utf-8", "replace")
    return next((line[2:] for line in log.splitlines() if line.startswith(f"! {source}: ")), None)


def _run_and_publish(run: ModuleRun, records: Path, failure: Path) -> None:
    """Run the cases and write the complete file `records` or `failure`; neither of them after an interrupt."""
    out = records.with_suffix(f".{os.getpid()}")  # the probe of a killed process may still write to its own file
    copy = run.out_folder and run.out_folder / run.records
    try:
        if copy:
            copy.unlink(missing_ok=True)  # of an earlier run; modules that this one imports may have changed
        message = _run_probe(run, out)
        if message is None and copy:
            _copy_atomically(out, copy)
    except OSError as error:
        message = f"cannot write the records: {from_os_error(error).cause}"
    if message is None:
        out.replace(records)
    else:
        failure.write_text(message, "utf-8")


def _run_probe(run: ModuleRun, out: Path) -> str | None:
    """Run the probe; return a message if it wrote no records."""
    plan, log = out.with_suffix(".plan"), out.with_suffix(".log")
    plan.write_text(json.dumps(run.plan), "utf-8")
    command = [sys.executable, "-m", "tfdet_probe", *run.arguments, "--plan", str(plan), "--out", str(out)]
    command += ["--exit-with", str(os.getpid())]
    with log.open("wb") as log_file:
        process = subprocess.Popen(
            command, env=run.environ, cwd=run.cwd, stdin=subprocess.PIPE, stdout=log_file, stderr=subprocess.STDOUT
        )
        try:
            code = process.wait()
        finally:
            _end(process)
    if code in _COMPLETED and out.exists() and out.stat().st_size:
        return None
    return f"the suite did not run here: {log.read_text('utf-8', 'replace').strip()[-2000:]}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the probe, if it still runs, by closing its standard input."""
    assert process.stdin
    process.stdin.close()
    try:
        process.wait(_END_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()


def _copy_atomically(records: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        shutil.copyfile(records, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
