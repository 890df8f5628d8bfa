"""Programs that test `trace locate`, each with the expected answer: the folders `collection`, `collection_torch`.

A program's docstring holds directives, one a line (the README of the folder `collection` explains them, too):

form: the kind of program, such as "Keras fit"; for people only.
in: the environments that run it; absent: all of ENVIRONMENTS or TORCH_ENVIRONMENTS.
fresh: why its runs must not be forks of one process; absent: they are.
expect: the expected answer, one line for each cause, the root cause first.
    op=TYPE | class=CLASS | source=SOURCE | step=N: op type, class of the cause; optional: source of the matrix, step;
    alternatives are separated by /, * matches anything.
    length: one run is longer than the other.
    hidden: no recorded op shows the difference.
    same: the program is deterministic.

A comment `# <- culprit` marks the line of each cause, `# <- or` another line that is right as well, such as that of a
layer that draws its seed when it is created.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from forks import TRACE, Forks, Job

from tfdeterminism.trace.schema.format import TraceFormatError
from tfdeterminism.trace.search.program_runner import ProgramFailedError, ProgramRunner
from tfdeterminism.trace.search.progress import Progress
from tfdeterminism.trace.search.search import Search

FOLDER = Path(__file__).resolve().parent / "collection"
TORCH = FOLDER.with_name("collection_torch")
ENVIRONMENTS = ("tf2.21", "tf2.0", "tf1.14")
TORCH_ENVIRONMENTS = ("torch2.13",)
FACTS = {"op", "class", "source", "step", "forward"}  # what `expect:` may name; forward: the op whose gradient op is


class Program:
    """One program and its directives.

    Attributes:
        outcome: "causes", or the directive's word: "length", "hidden", "same".
        expected: {name: value} of each cause; empty for other outcomes.
        lines: the line numbers of the causes.
        alternative_lines: line numbers that are right as well.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.name, self.text = path, path.stem, path.read_text("utf-8")
        self.form = self._directive("form")
        default = TORCH_ENVIRONMENTS if path.parent == TORCH else ENVIRONMENTS
        self.environments = self._directive("in").split() or list(default)
        self.fresh = bool(self._directive("fresh"))
        self.outcome, self.expected = expectations(self.text)
        self.alternative_lines = [n for n, line in enumerate(self.text.splitlines(), 1) if line.endswith("# <- or")]
        self.lines = [n for n, line in enumerate(self.text.splitlines(), 1) if line.endswith("# <- culprit")]

    def _directive(self, name: str) -> str:
        """Return the text of a directive, "" if it is absent."""
        match = re.search(rf"^{name}: (.*)", self.text, re.M)
        return match.group(1) if match else ""

    def faults(self, result: Mapping[str, Any]) -> list[str]:
        """The differences between the answer of `locate --json` and the expected one, as text."""
        if self.outcome == "same":
            return [] if result["result"] == "same" else [f"accused: {result['verdict']}"]
        if self.outcome == "length":
            length = result["result"] == "structure" and not result["culprits"]
            return [] if length else [f"{result['result']}: {result['verdict']}"]
        if self.outcome == "hidden":
            is_hidden = result["result"] == "diverged" and not result["masked_by_tracing"] and not result["culprits"]
            return [] if is_hidden else [f"{result['result']}: {result['verdict']}"]
        culprits = result["culprits"]
        wrong = [f"{len(culprits)} culprits, not {len(self.expected)}: {[culprit['op_type'] for culprit in culprits]}"]
        if len(culprits) == len(self.expected):
            wrong = []
        raced = (result.get("replay") or {}).get("distinct", 0) > 1
        for line, want, actual in zip(self.lines, self.expected, culprits, strict=False):
            wrong += self._faults_of(replace_unreplayed_race(want, raced and actual is culprits[0]), line, actual)
        return wrong or ([f"nothing found: {result['verdict']}"] if not culprits else [])

    def _faults_of(self, want: Mapping[str, str], line: int, actual: Mapping[str, Any]) -> list[str]:
        """Return how a reported culprit differs from the expected facts."""
        lines = "/".join(f"{self.path.name}:{number}" for number in [line, *self.alternative_lines])
        reported = {"op": actual["op_type"].replace("IteratorGetNextSync", "IteratorGetNext"),
                    "class": actual["class"],
                    "line": f"{Path(actual['file'] or '').name}:{actual['line']}",
                    "source": actual["source"],
                    "step": str(actual["step"])}  # fmt: skip
        return [f"{name} {reported[name]}, not {expected}" for name, expected in {**want, "line": lines}.items()
                if expected != "*" and reported[name] not in expected.split("/")]  # fmt: skip


def expectations(text: str) -> tuple[str, list[dict[str, str]]]:
    """Return (outcome, {name: value} of each expected cause) of a program's directives `expect:`."""
    specs = re.findall(r"^expect: (.*)", text, re.M)
    if not specs or specs == ["same"]:
        return "same", []
    if specs in (["length"], ["hidden"]):
        return specs[0], []
    causes = [dict(part.split("=", 1) for part in spec.split(" | ")) for spec in specs]
    assert all({"op", "class"} <= set(cause) <= FACTS for cause in causes), specs
    return "causes", causes


def replace_unreplayed_race(want: Mapping[str, str], replay_differed: bool) -> dict[str, str]:
    """Return the facts to expect: of class `unexplained` instead of `kernel race` if no replay of the op differed.

    Two traces alone do not show that a kernel races.
    """
    return dict(want) if replay_differed else {**want, "class": want["class"].replace("kernel race", "unexplained")}


def framework(environment: str) -> str:
    """Return the name of the module that the programs of this environment import."""
    return "torch" if environment in TORCH_ENVIRONMENTS else "tensorflow"


def programs(environment: str) -> list[Program]:
    """Return the programs that run in an environment."""
    folder = TORCH if framework(environment) == "torch" else FOLDER
    all_programs = [Program(path) for path in sorted(folder.glob("*.py"))]
    return [program for program in all_programs if environment in program.environments]


class ForkedRunner(ProgramRunner):
    """Makes the runs of `locate` as forks of one process that has imported TensorFlow."""

    def __init__(self, program: Program, folder: Path, forks: Forks) -> None:
        super().__init__([str(program.path)], str(folder))
        self._forks, self._fresh = forks, program.fresh

    def record(self, number: int, options: Sequence[str], environment: Any = None) -> None:
        arguments = [*TRACE, "run", *options, "--", *self._program]
        job = Job(arguments, environment=dict(environment or {}), fresh=self._fresh, alone=True)
        (ran,) = self._forks.run([job])
        Path(self._output).write_text(ran.stdout, "utf-8")
        Path(self._errors).write_text(ran.stderr, "utf-8")
        if ran.returncode:
            raise self._to_error(ran.returncode, number)

    def replay(self, path: str, times: int) -> Any:
        (ran,) = self._forks.run([Job([*TRACE, "replay", path, "--repeats", str(times)], alone=True)])
        if ran.returncode not in (0, 1):
            raise ProgramFailedError(ran.stderr.strip().splitlines()[0], "")
        return json.loads(ran.stdout.strip().splitlines()[-1])


def search_program(program: Program, forks: Forks, folder: Path, runs: int = 5) -> dict[str, Any]:
    """Run `locate --json` on a program; return the parsed output."""
    progress = Progress(8, out=io.StringIO())
    search = Search([str(program.path)], str(folder), runs, progress=progress,
                    runner=ForkedRunner(program, folder, forks))  # fmt: skip
    return search.search().as_json()


def faults(program: Program, forks: Forks, folder: Path, runs: int = 5) -> list[str]:
    """Locate the causes in a program; returns the differences from the expected answer."""
    try:
        return program.faults(search_program(program, forks, folder, runs))
    except (ProgramFailedError, TraceFormatError) as error:
        return [f"failed: {error.cause.splitlines()[0]}"]
