"""The folder of a fleet, shared by its machines. Each file has one writer, which writes it atomically or by lines.

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
from tfdet.base.folders import is_there, listed
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
ClusterKind = Literal["slurm", "local"]  # to what


class Fleet(StrictModel):
    """The content of fleet.json."""

    schema_: int = Field(default=1, alias="schema", ge=1, le=1)
    name: Text = Field(description="of its jobs, with a round's number behind it")
    root: Text = Field(description="the checkout, or what an installed tfdet brings")
    user_data: Text | None = Field(default=None, description="of an installed tfdet: its user's data folder")
    cluster: ClusterKind
    sbatch_options: dict[str, str] = Field(
        default={}, description="what else is asked of the cluster, in its own words"
    )
    max_parallel: int | None = Field(default=None, ge=1, description="of its tasks; absent: the cluster's default")
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
    node: Text
    started: float


class AttemptEnd(StrictModel):
    """code: the probe's.  told: what was wrong, where something was."""

    code: int
    node: Text
    seconds: float = Field(ge=0, allow_inf_nan=False)
    error: str = ""


class FleetFolder:
    def __init__(self, path: Path) -> None:
        self.path = resolve(path)

    @cached_property
    def fleet(self) -> Fleet:
        where = self.path / PLAN
        if not is_there(where):
            raise UsageError(f"{self.path}: contains no fleet", "Pass the folder that `tfdet fleet run` printed.")
        try:
            return Fleet.model_validate_json(read_bytes(where))
        except ValidationError as error:
            why = format_validation_error(error.errors()[0], "file")
            raise DataError(
                f"{where}: not a plan of this version of tfdet: {why}", "Plan a new fleet: tfdet fleet run."
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
        """Return the job name, unique to this folder, by which its jobs are found."""
        known = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:8]
        return f"tfdet-{re.sub('[^A-Za-z0-9.-]', '-', self.path.name)[:40]}-{known}"

    @property
    def cancelled(self) -> bool:
        """Whether the fleet is cancelled: nothing more is submitted."""
        return is_there(self.path / "cancelled")

    def cancel(self, yes: bool) -> None:
        if yes:
            (self.path / "cancelled").touch()
        else:
            (self.path / "cancelled").unlink(missing_ok=True)

    def started_attempts(self) -> dict[int, list[str]]:
        """Return {task: names of the attempts that began}, sorted."""
        return self._by_task("begun")

    def ended_attempts(self) -> dict[int, list[AttemptEnd]]:
        return {task: [self._ended(name) for name in names] for task, names in self._by_task("ended").items()}

    def _ended(self, name: str) -> AttemptEnd:
        return _read_json(self.path / "ended" / f"{name}.json", TypeAdapter(AttemptEnd))

    def _by_task(self, kind: str) -> dict[int, list[str]]:
        """Return {task: attempt names} of a subfolder; files with other names are ignored."""
        found: dict[int, list[str]] = defaultdict(list)
        with os.scandir(self.path / kind) as there:
            names = sorted(name for entry in there if _ATTEMPT.fullmatch(name := entry.name))
        for name in names:
            if (task := int(name.partition("-")[0])) < len(self.fleet.tasks):
                found[task].append(name.removesuffix(".json"))
        return found

    def record_start(self, attempt: str, begun: AttemptStart) -> None:
        write_atomic(self.path / "begun" / f"{attempt}.json", begun.model_dump_json())

    def record_end(self, attempt: str, ended: AttemptEnd) -> None:
        write_atomic(self.path / "ended" / f"{attempt}.json", ended.model_dump_json())

    def journal(self, attempt: str) -> Path:
        return self.path / "records" / f"{attempt}.jsonl"

    def lines(self, attempts: list[str]) -> Iterator[str]:
        """Yield each record of a task's attempts once, without incomplete last lines.

        Crashes in an attempt that was killed are left out: the case may not be their cause.
        """
        return (line for _, _, line in self.named_lines(attempts))

    def named_lines(self, attempts: list[str]) -> Iterator[tuple[str, int, str]]:
        """Yield (attempt, line number, line)."""
        seen: set[str] = set()
        for attempt in attempts:
            whole = self._ended_by_itself(attempt)
            for number, line in enumerate(self._complete_lines(attempt), 1):
                if line in seen or not (whole or is_completed(line)):
                    continue
                seen.add(line)
                yield attempt, number, line

    def made_progress(self, attempts: list[str], last: int) -> bool:
        """Return whether the last `last` attempts added a record that no earlier attempt has."""
        before = set(self.lines(attempts[:-last]))
        return any(line not in before for line in self.lines(attempts[-last:]))

    def _ended_by_itself(self, attempt: str) -> bool:
        """Return whether an attempt ended neither by an interrupt nor by a signal (a negative exit code)."""
        there = is_there(self.path / "ended" / f"{attempt}.json")
        return there and 0 <= self._ended(attempt).code < ExitCode.INTERRUPTED

    def _complete_lines(self, attempt: str) -> list[str]:
        """Return the complete lines. A power loss may leave invalid text: such lines are reported later."""
        journal = self.journal(attempt)
        if not is_there(journal):
            return []
        content = read_bytes(journal, _MOVE_ADVICE)
        return content[: content.rfind(b"\n") + 1].decode("utf-8", "replace").splitlines()

    def submissions(self) -> list[Submission]:
        there = listed(self.path / "rounds")
        found = [path for path in there if _ROUND.fullmatch(path.name) and path.suffix == ".json"]
        return [_read_json(path, TypeAdapter(Submission)) for path in found]

    def add_submission(self, tasks: list[int]) -> Submission:
        """Record a submission before it is made, so that --resume knows which jobs to look for."""
        there = [_ROUND.fullmatch(path.name) for path in listed(self.path / "rounds")]
        number = max((int(one[1]) + 1 for one in there if one), default=0)
        made = Submission(name=f"{self.fleet.name}-{number:04}", tasks=tasks)
        write_atomic(self._submission_file(made, "json"), made.model_dump_json())
        return made

    def record_submission(self, made: Submission, ids: list[str]) -> None:
        write_atomic(self._submission_file(made, "ids"), json.dumps(ids))

    def job_ids(self, made: Submission) -> list[str] | None:
        """Return the job IDs; None if the submitter ended before it recorded them."""
        where = self._submission_file(made, "ids")
        return _read_json(where, _IDS) if is_there(where) else None

    def _submission_file(self, made: Submission, kind: str) -> Path:
        return self.path / "rounds" / f"{made.name.rpartition('-')[2]}.{kind}"


def is_completed(line: str) -> bool:
    return '"observation":"crashed"' not in line and '"observation":"timed-out"' not in line


def _read_json(path: Path, shape: TypeAdapter[T]) -> T:
    """Read a file. tfdet writes atomically: an invalid file was damaged by something else."""
    try:
        return shape.validate_json(read_bytes(path, _MOVE_ADVICE))
    except ValidationError as error:
        raise DataError(f"{path}: {format_validation_error(error.errors()[0], 'file')}", _MOVE_ADVICE) from error
