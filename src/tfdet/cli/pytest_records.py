"""The records of a test module's cases, which the probe runs once a session, in however many processes that tests."""

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

_ENDED = (0, 1, 3)  # as claimed, contradicted, some case failed: its record says so
_PATIENCE = 10.0  # seconds in which the probe ends its cases


def records_path(root: Path, module: Path) -> Path:
    """Where a folder holds a module's records: as the module lies in the project, so that no two share a file."""
    inside = module.relative_to(root if module.is_relative_to(root) else module.anchor)
    return inside.with_suffix(".jsonl")


@dataclass(frozen=True)
class ModuleRun:
    """Of one module.  kept: a folder of the user's for the records; arguments: of the probe."""

    where: Path
    kept: Path | None
    plan: dict[str, Any]
    arguments: Sequence[str]
    environ: dict[str, str]
    cwd: Path


def run_once(shared: Path, run: ModuleRun) -> list[Record]:
    """Who comes while another process runs these cases waits, and takes what it left in the folder `shared`."""
    from tfdet.store.records import read_records

    done = shared / run.where
    failed = done.with_suffix(".failed")
    done.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{done}.lock"):
        if not done.exists() and not failed.exists():
            _publish(run, done, failed)
    if failed.exists():
        raise RunFailedError(failed.read_text("utf-8"))
    return list(read_records(done))


def refusal(shared: Path, where: Path, source: str) -> str | None:
    """What the probe said of the cases of a source that it did not run."""
    log = (shared / where).with_suffix(".log").read_text("utf-8", "replace")
    return next((line[2:] for line in log.splitlines() if line.startswith(f"! {source}: ")), None)


def _publish(run: ModuleRun, done: Path, failed: Path) -> None:
    """`done` or `failed` is there afterwards, whole; neither after an interrupt."""
    out = done.with_suffix(f".{os.getpid()}")  # the probe of a process that was killed may still write its own
    kept = run.kept and run.kept / run.where
    try:
        if kept:
            kept.unlink(missing_ok=True)  # of an earlier run: what the module imports may have changed
        said = _probe(run, out)
        if said is None and kept:
            _keep(out, kept)
    except OSError as error:
        said = f"cannot write the records: {from_os_error(error).cause}"
    if said is None:
        out.replace(done)
    else:
        failed.write_text(said, "utf-8")


def _probe(run: ModuleRun, out: Path) -> str | None:
    """What it said where it left no records."""
    plan, log = out.with_suffix(".plan"), out.with_suffix(".log")
    plan.write_text(json.dumps(run.plan), "utf-8")
    command = [sys.executable, "-m", "tfdet_probe", *run.arguments, "--plan", str(plan), "--out", str(out)]
    command += ["--exit-with", str(os.getpid())]
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, env=run.environ, cwd=run.cwd, stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT
        )
        try:
            code = process.wait()
        finally:
            _end(process)
    if code in _ENDED and out.exists() and out.stat().st_size:
        return None
    return f"the suite did not run here: {log.read_text('utf-8', 'replace').strip()[-2000:]}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """The end of its input tells the probe to go, where it is still there."""
    assert process.stdin
    process.stdin.close()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()


def _keep(records: Path, kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    beside = kept.with_name(f".{kept.name}.{os.getpid()}")
    try:
        shutil.copyfile(records, beside)
        beside.replace(kept)
    finally:
        beside.unlink(missing_ok=True)
