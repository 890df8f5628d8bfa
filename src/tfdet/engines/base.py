"""What an engine is asked to do: run the shared suite in one environment."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tfdet.base.errors import UsageError
from tfdet.base.untrusted import resolve
from tfdet.matrix.devices import GPU, DeviceKind
from tfdet.matrix.models import Environment
from tfdet_common.defaults import RUN_DEFAULTS
from tfdet_common.variables import CALLER_VARIABLES


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What of the suite to run, where, and how often.

    sources, solutions, cases: none named means all; cases are patterns of names.  timeout: seconds, memory: MiB, both
    for one process of one case.
    resume_from_any_machine: what another machine finished in the same journal is not run again.
    proves: the virtual GPU proves of each case that no order of execution gives other bytes.
    code: what the virtual GPU runs where a container has both, see virtual_gpu.CODES; None: its default.
    """

    device: str = GPU  # as `--device` calls it
    sources: tuple[str, ...] = ()
    solutions: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    repeats: int = RUN_DEFAULTS.repeats
    processes: int = RUN_DEFAULTS.processes
    timeout: float = RUN_DEFAULTS.seconds
    memory: int = RUN_DEFAULTS.mebibytes
    resume_from_any_machine: bool = False
    proves: bool = False
    code: str | None = None

    def probe_arguments(self) -> list[str]:
        """Arguments of `python -m tfdet_probe`, but for --plan, --suite and --out, which are the engine's."""
        arguments = ["--device", self.device, "--repeats", str(self.repeats), "--processes", str(self.processes)]
        arguments += ["--timeout", str(self.timeout), "--memory", str(self.memory)]
        arguments += ["--resume-from-any-machine"] * self.resume_from_any_machine
        arguments += ["--prove"] * self.proves
        arguments += ["--code", self.code] if self.code else []
        for source in self.sources:
            arguments += ["--source", source]
        for solution in self.solutions:
            arguments += ["--solution", solution]
        for case in self.cases:
            arguments += ["--case", case]
        return arguments


@dataclass(frozen=True, kw_only=True)
class Request:
    """One run of the suite.  plan: the file that the probe reads; journal: where it appends its records.

    kind: of the device that the selection names.
    """

    key: str
    environment: Environment
    plan: Path
    journal: Path
    selection: Selection
    kind: DeviceKind


def container_path(journal: Path) -> Path:
    """Where a container writes what becomes this journal."""
    journal = resolve(journal)
    return journal.with_name(journal.name + ".container") / "records.jsonl"


def forwarded_environment() -> dict[str, str]:
    """Of the caller's shell, what every case is to see and its record to say; a switch that is neither on nor off
    would say what TensorFlow does not do.
    """
    chosen = {name: os.environ[name] for name in CALLER_VARIABLES if os.environ.get(name)}
    for name, value in chosen.items():
        if value.lower() not in ("0", "1", "false", "true"):
            raise UsageError(f"{name}={value}: neither 0 nor 1", f"Set {name} to 0 or 1, or unset it.")
    return chosen


class Engine(Protocol):
    """Brings an environment up and runs the suite in it."""

    def run(self, request: Request) -> int:
        """Run; the probe's exit code (errors.ExitCode).  Raises TfdetError where nothing could be run."""
        ...


@contextlib.contextmanager
def sigterm_as_keyboard_interrupt(first: Callable[[], None] = lambda: None) -> Iterator[None]:
    """A cancelled job is told by SIGTERM: it, too, leaves nothing behind.  first: what is done before the interrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        first()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
