"""The interface of engines, which run the shared suite in one environment."""

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
    """The part of the suite to run, the device, and the number of runs.

    sources (of nondeterminism), solutions (what makes them deterministic), cases: empty means all; cases are patterns
    of names.  timeout (seconds), memory (MiB): limits for one process of one case.
    resume_from_any_machine: do not repeat runs that another machine finished in the same journal.
    proves: the virtual GPU proves for each case that no order of execution gives other bytes.
    code: the code that the virtual GPU runs if a fatbin has PTX and machine code, one of virtual_gpu.CODES; None: its
    default.  multiprocessors: their number on the virtual GPU.  placement: a seed of the addresses of its allocations.
    """

    device: str = GPU  # a value of --device
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
    multiprocessors: int | None = None
    placement: int | None = None

    def probe_arguments(self) -> list[str]:
        """Return the arguments of `python -m tfdet_probe`, except --plan, --suite and --out, which the engine adds."""
        arguments = ["--device", self.device, "--repeats", str(self.repeats), "--processes", str(self.processes)]
        arguments += ["--timeout", str(self.timeout), "--memory", str(self.memory)]
        arguments += ["--resume-from-any-machine"] * self.resume_from_any_machine
        arguments += ["--prove"] * self.proves
        arguments += ["--code", self.code] if self.code else []
        for name, number in (("--multiprocessors", self.multiprocessors), ("--placement", self.placement)):
            arguments += [name, str(number)] if number is not None else []
        for source in self.sources:
            arguments += ["--source", source]
        for solution in self.solutions:
            arguments += ["--solution", solution]
        for case in self.cases:
            arguments += ["--case", case]
        return arguments


@dataclass(frozen=True, kw_only=True)
class Request:
    """One run of the suite.

    key: of the environment.  plan: the file that the probe reads.  journal: the file to which it appends its records.
    kind: the kind of the selection's device.
    """

    key: str
    environment: Environment
    plan: Path
    journal: Path
    selection: Selection
    kind: DeviceKind


def container_path(journal: Path) -> Path:
    """Return the file to which a container writes the records that are moved to this journal at its end."""
    journal = resolve(journal)
    return journal.with_name(journal.name + ".container") / "records.jsonl"


def forwarded_environment() -> dict[str, str]:
    """Return the user's environment variables that every case gets, and that its record contains.

    UsageError for a value that is not a boolean: TensorFlow would not interpret it as the user expects.
    """
    variables = {name: os.environ[name] for name in CALLER_VARIABLES if os.environ.get(name)}
    for name, value in variables.items():
        if value.lower() not in ("0", "1", "false", "true"):
            raise UsageError(f"{name}={value}: neither 0 nor 1", f"Set {name} to 0 or 1, or unset it.")
    return variables


class Engine(Protocol):
    """An object that starts an environment and runs the suite in it."""

    def run(self, request: Request) -> int:
        """Run the suite and return the probe's exit code (errors.ExitCode); TfdetError if nothing could be run."""
        ...


@contextlib.contextmanager
def sigterm_as_keyboard_interrupt(on_sigterm: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Call `on_sigterm` and raise KeyboardInterrupt on SIGTERM, so that a cancelled job cleans up as after Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        on_sigterm()
        raise KeyboardInterrupt

    old_handler = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old_handler)
