"""One attempt at one task: the code that runs on a machine of the cluster.

A fleet is a run of the suite on many machines. A task is a part of it: sources of nondeterminism in one environment.
"""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import time
import uuid
from pathlib import Path

from tfdet.base.errors import ExitCode, InterruptedRunError, TfdetError, from_os_error
from tfdet.base.files import write_atomic
from tfdet.engines.base import Request
from tfdet.engines.run import engine_for
from tfdet.fleet.folder import AttemptEnd, AttemptStart, FleetFolder
from tfdet.fleet.tasks import Task
from tfdet.matrix.load import load_matrix
from tfdet.matrix.plan import write_plan
from tfdet.store.records import parse

GPUS, SUBMITTER_GPUS, ALL = "CUDA_VISIBLE_DEVICES", "TFDET_SUBMITTER_GPUS", "all"


def run(path: str, index: int) -> int:
    """Run a task and record the attempt's exit code, which is returned, too. Finished records are always kept.

    path: of the fleet's folder.  index: of the task in the fleet's plan.
    """
    folder, started, start_time = FleetFolder(Path(path)), time.time(), time.monotonic()
    _inherit_visible_devices()
    attempt = f"{index}-{time.time_ns()}-{uuid.uuid4().hex[:8]}"
    earlier = folder.started_attempts().get(index, [])
    node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    folder.record_start(attempt, AttemptStart(node=node, started=started))
    _interrupt_on_signals()
    code, error = _run_attempt(folder, attempt, earlier, folder.fleet.tasks[index])
    seconds = round(time.monotonic() - start_time, 1)
    folder.record_end(attempt, AttemptEnd(code=code, node=node, seconds=seconds, error=error))
    return code


def _run_attempt(folder: FleetFolder, attempt: str, earlier: list[str], task: Task) -> tuple[int, str]:
    """Run the suite and return (exit code, error message). earlier: names of earlier attempts."""
    try:
        return _run_suite(folder, attempt, earlier, task), ""
    except (KeyboardInterrupt, InterruptedRunError):
        return ExitCode.INTERRUPTED, ""
    except TfdetError as error:
        return error.code, error.cause
    except OSError as error:
        return ExitCode.RUN_FAILED, from_os_error(error).cause


def _run_suite(folder: FleetFolder, attempt: str, earlier: list[str], task: Task) -> int:
    """Run the suite with a journal that begins with the records of earlier attempts."""
    fleet = folder.fleet
    project, options = fleet.project, fleet.options
    matrix = load_matrix(project.matrix)
    environment = matrix.environment(task.environment)
    journal = folder.journal(attempt)
    write_atomic(journal, "".join(f"{line}\n" for line in folder.lines(earlier) if _is_record(line)))
    engine = engine_for(project, environment, options.engine)
    with tempfile.TemporaryDirectory(prefix="tfdet-") as temporary:
        # The probe's plan: the sources of the environment, of which the selection runs a part.
        plan = write_plan(matrix, task.environment, Path(temporary, "plan.json"))
        request = Request(
            key=task.environment, environment=environment, plan=plan, journal=journal,
            selection=options.selection(task.sources), kind=matrix.devices.find_by_cli_name(options.device),
        )  # fmt: skip
        return engine.run(request)


def _is_record(line: str) -> bool:
    """Return whether the line is valid. Damaged lines are reported when records are collected, not here."""
    try:
        parse(line.encode("utf-8"))
    except ValueError:
        return False
    return True


def _inherit_visible_devices() -> None:
    """Set CUDA_VISIBLE_DEVICES to the value that the local submitter had, since submitit changes it."""
    gpus = os.environ.pop(SUBMITTER_GPUS, None)
    if gpus == ALL:
        os.environ.pop(GPUS, None)
    elif gpus is not None:
        os.environ[GPUS] = gpus


def _interrupt_on_signals() -> None:
    """Turn the signals that a cluster sends before SIGKILL into KeyboardInterrupt."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGUSR2):
        signal.signal(number, stop)
