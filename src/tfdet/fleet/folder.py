"""The folder of a fleet, which its machines share. Each file has one writer, which writes it atomically or by lines.

A fleet is a run of the suite on many machines. A task is a part of it: sources of nondeterminism in one environment.

fleet.json                 the plan
rounds/0003.json           one submission: its tasks and its job name; .ids: the cluster's job IDs
begun/7-ATTEMPT.json       the start of an attempt at task 7: machine and time
ended/7-ATTEMPT.json       its end: exit code and error; absent while it runs, or if it was killed
records/7-ATTEMPT.jsonl    its journal
logs/                      the output of the tasks
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from tfdet.base.errors import DataError, ExitCode, UsageError
from tfdet.base.files import write_atomic
from tfdet.base.folders import is_there, list_entries
from tfdet.base.paths import Project
from tfdet.base.untrusted import read_bytes, resolve
from tfdet.fleet.tasks import FleetOptions, Task
from tfdet.matrix.field_types import StrictModel, Text, format_validation_error

PLAN = "fleet.json"
_ATTEMPT: Final = re.compile(r"([0-9]{1,9})-[^.]+\.json")
_ROUND: Final = re.compile(r"([0-9]{4,9})\.(json|ids)")
_MOVE_ADVICE: Final = "Move the file away, then continue: tfdet fleet run --resume."
_IDS: Final = TypeAdapter(list[str])
T = TypeVar("T")
ClusterKind = Literal["slurm", "local"]


class Fleet(StrictModel):
    """The content of fleet.json."""

    schema_: int = Field(default=1, alias="schema", ge=1, le=1)
    name: Text = Field(description="prefix of the names of its jobs, followed by the number of the submission")
    root: Text = Field(description="the checkout, or the data folder of an installed tfdet")
    user_data: Text | None = Field(default=None, description="of an installed tfdet: the folder of the user's data")
    cluster: ClusterKind
    sbatch_options: dict[str, str] = Field(default={}, description="further options for sbatch")
    max_parallel: int | None = Field(default=None, ge=1, description="number of tasks; absent: the cluster's default")
    options: FleetOptions
    tasks: list[Task]

    @property
    def project(self) -> Project:
        return Project(Path(self.root), user_data=Path(self.user_data) if self.user_data else None)


class Submission(StrictModel):
    """Tasks submitted together. tasks: in the order of the cluster's array index, from 0."""

    name: Text
    tasks: list[int]


class AttemptStart(StrictModel):
    """The content of begun/*.json.  node: the machine.  started: seconds since 1970."""

    node: Text
    started: float


class AttemptEnd(StrictModel):
    """The content of ended/*.json.  code: the probe's exit code.  error: the cause of a failure, if any."""

    code: int
    node: Text
    seconds: float = Field(ge=0, allow_inf_nan=False)
    error: str = ""


class FleetFolder:
    """The folder of one fleet, with methods to read and write its files."""

    def __init__(self, path: Path) -> None:
        """Open or name a folder; DataError for a link to nothing, through which another folder would be created."""
        is_there(path)
        self.path = resolve(path)

    @cached_property
    def fleet(self) -> Fleet:
        """Return the plan; UsageError if there is none, DataError if it is invalid."""
        plan = self.path / PLAN
        if not is_there(plan):
            raise UsageError(f"{self.path}: contains no fleet", "Pass the folder that `tfdet fleet run` printed.")
        try:
            return Fleet.model_validate_json(read_bytes(plan))
        except ValidationError as error:
            reason = format_validation_error(error.errors()[0], "file")
            raise DataError(
                f"{plan}: not a plan of this version of tfdet: {reason}", "Plan a new fleet: tfdet fleet run."
            ) from error

    def make(self, fleet: Fleet) -> None:
        """Create the folder. Only its owner may write there: tasks execute the plan, and the records are signed."""
        if is_there(self.path) and not self.path.is_dir():
            raise UsageError(f"{self.path}: not a folder", "Pass a new folder.")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / "rounds").mkdir(mode=0o755)  # fails for the second of two concurrent planners
        except FileExistsError:
            is_planned = is_there(self.path / PLAN)
            advice = (
                "Continue it with --resume."
                if is_planned
                else "Its planning was aborted or is active: remove it, or wait."
            )
            raise UsageError(f"{self.path}: already contains a fleet", advice) from None
        for name in ("begun", "ended", "records", "logs"):
            (self.path / name).mkdir(mode=0o755, exist_ok=True)
        write_atomic(self.path / PLAN, fleet.model_dump_json(by_alias=True, indent=1) + "\n")

    @property
    def job_name(self) -> str:
        """Return the prefix of the names of this fleet's jobs, which is unique to the folder."""
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:8]
        return f"tfdet-{re.sub('[^A-Za-z0-9.-]', '-', self.path.name)[:40]}-{digest}"

    @property
    def cancelled(self) -> bool:
        """Return whether the fleet is cancelled, so that no more tasks may be submitted."""
        return is_there(self.path / "cancelled")

    def cancel(self, is_cancelled: bool) -> None:
        """Mark the fleet as cancelled, or as not cancelled any more."""
        if is_cancelled:
            (self.path / "cancelled").touch()
        else:
            (self.path / "cancelled").unlink(missing_ok=True)

    def started_attempts(self) -> dict[int, list[str]]:
        """Return {task: sorted names of the attempts that began}."""
        return self._attempts_by_task("begun")

    def ended_attempts(self) -> dict[int, list[AttemptEnd]]:
        """Return {task: ends of its attempts}, without those that still run or were killed."""
        ended = self._attempts_by_task("ended")
        return {task: [self._read_end(name) for name in names] for task, names in ended.items()}

    def _read_end(self, name: str) -> AttemptEnd:
        return _read_json(self.path / "ended" / f"{name}.json", TypeAdapter(AttemptEnd))

    def _attempts_by_task(self, subfolder: str) -> dict[int, list[str]]:
        """Return {task: attempt names} of a subfolder; files with other names are ignored."""
        attempts: dict[int, list[str]] = defaultdict(list)
        with os.scandir(self.path / subfolder) as entries:
            names = sorted(name for entry in entries if _ATTEMPT.fullmatch(name := entry.name))
        for name in names:
            if (task := int(name.partition("-")[0])) < len(self.fleet.tasks):
                attempts[task].append(name.removesuffix(".json"))
        return attempts

    def record_start(self, attempt: str, start: AttemptStart) -> None:
        write_atomic(self.path / "begun" / f"{attempt}.json", start.model_dump_json())

    def record_end(self, attempt: str, end: AttemptEnd) -> None:
        write_atomic(self.path / "ended" / f"{attempt}.json", end.model_dump_json())

    def journal(self, attempt: str) -> Path:
        return self.path / "records" / f"{attempt}.jsonl"

    def lines(self, attempts: list[str]) -> Iterator[str]:
        """Yield each record of a task's attempts once, without incomplete last lines.

        Crashes in an attempt that was killed are left out: the case may not be their cause.
        """
        return (line for _, _, line in self.named_lines(attempts))

    def named_lines(self, attempts: list[str]) -> Iterator[tuple[str, int, str]]:
        """Yield (attempt, line number, line) of the lines of `lines`."""
        yielded: set[str] = set()
        for attempt in attempts:
            is_finished = self._has_finished(attempt)
            for number, line in enumerate(self._complete_lines(attempt), 1):
                if line in yielded or not (is_finished or is_completed(line)):
                    continue
                yielded.add(line)
                yield attempt, number, line

    def made_progress(self, attempts: list[str], last: int) -> bool:
        """Return whether the last `last` attempts added a record that no earlier attempt has."""
        earlier_lines = set(self.lines(attempts[:-last]))
        return any(line not in earlier_lines for line in self.lines(attempts[-last:]))

    def _has_finished(self, attempt: str) -> bool:
        """Return whether an attempt ended neither by an interrupt nor by a signal (a negative exit code)."""
        has_ended = is_there(self.path / "ended" / f"{attempt}.json")
        return has_ended and 0 <= self._read_end(attempt).code < ExitCode.INTERRUPTED

    def _complete_lines(self, attempt: str) -> list[str]:
        """Return the complete lines. A power loss may leave invalid text: such lines are reported later."""
        journal = self.journal(attempt)
        if not is_there(journal):
            return []
        content = read_bytes(journal, _MOVE_ADVICE)
        return content[: content.rfind(b"\n") + 1].decode("utf-8", "replace").splitlines()

    def submissions(self) -> list[Submission]:
        entries = list_entries(self.path / "rounds")
        paths = [path for path in entries if _ROUND.fullmatch(path.name) and path.suffix == ".json"]
        return [_read_json(path, TypeAdapter(Submission)) for path in paths]

    def add_submission(self, tasks: list[int]) -> Submission:
        """Record a submission before the cluster receives it, so that --resume knows which jobs to look for."""
        matches = [_ROUND.fullmatch(path.name) for path in list_entries(self.path / "rounds")]
        number = max((int(match[1]) + 1 for match in matches if match), default=0)
        submission = Submission(name=f"{self.fleet.name}-{number:04}", tasks=tasks)
        write_atomic(self._submission_file(submission, "json"), submission.model_dump_json())
        return submission

    def record_submission(self, submission: Submission, ids: list[str]) -> None:
        """Record the job IDs that the cluster gave to a submission."""
        write_atomic(self._submission_file(submission, "ids"), json.dumps(ids))

    def job_ids(self, submission: Submission) -> list[str] | None:
        """Return the job IDs; None if the submitter ended before it recorded them."""
        path = self._submission_file(submission, "ids")
        return _read_json(path, _IDS) if is_there(path) else None

    def _submission_file(self, submission: Submission, suffix: str) -> Path:
        return self.path / "rounds" / f"{submission.name.rpartition('-')[2]}.{suffix}"


def is_completed(line: str) -> bool:
    """Return whether a record's case neither crashed nor reached its time limit."""
    return '"observation":"crashed"' not in line and '"observation":"timed-out"' not in line


def _read_json(path: Path, adapter: TypeAdapter[T]) -> T:
    """Read a JSON file; DataError if it is invalid, which atomic writes of tfdet cannot cause."""
    try:
        return adapter.validate_json(read_bytes(path, _MOVE_ADVICE))
    except ValidationError as error:
        raise DataError(f"{path}: {format_validation_error(error.errors()[0], 'file')}", _MOVE_ADVICE) from error
