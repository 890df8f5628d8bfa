"""Programs without a framework, which tests write, run with pins, and search for causes.

A pin gives a program the same value in every run, for one kind of cause, such as "clock", everywhere or at some places.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfdeterminism.trace.search.interposed_runs import PRINTED, InterposedRuns
from tfdeterminism.trace.search.program_copy import ProgramCopy

ROOT = Path(__file__).resolve().parents[2]
SLEEP = "time.sleep(0.03 * (os.urandom(1)[0] % 4))"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tfdeterminism.trace", "locate", *arguments]


def environ() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    return {**inherited, "PYTHONPATH": str(ROOT / "runtime")}


def write_program(folder: Path, **files: str) -> Path:
    """Write a program into a folder: main.py and modules beside it; return the folder."""
    program_folder = folder / "program"
    program_folder.mkdir()
    for name, text in files.items():
        (program_folder / f"{name}.py").write_text(text.lstrip("\n"))
    return program_folder


@dataclass
class Runner:
    """Runs a program.

    printed(number): the set of what `number` runs print; pins: {kind: places, None for everywhere}; vary: {kind: seed}.
    """

    runs: InterposedRuns
    copy: ProgramCopy

    def printed(self, number: int = 2, **pins: Any) -> set[str]:
        outputs = set()
        for turn in range(number):
            self.copy.restore()
            run = self.runs.run(turn, pins.get("pins"), pins.get("vary"))
            assert run.failed is None, run.failed and run.failed.cause
            outputs.add(run.ends[PRINTED])
        return outputs


def located(folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """Search main.py for causes by `locate --json`; return (exit code, answer)."""
    return located_words(folder, *options, "--", "main.py")


def located_words(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Call `locate --json` with these words of a command line; return (exit code, answer)."""
    ran = subprocess.run(
        command("--json", *words),
        cwd=folder,
        env=environ(),
        capture_output=True,
        text=True,
    )
    assert ran.stdout, ran.stderr
    return ran.returncode, json.loads(ran.stdout)


def places_of(output: dict[str, Any]) -> list[tuple[str, str, int]]:
    return sorted(
        (cause["kind"], place["file"], place["line"]) for cause in output["causes"] for place in cause["places"]
    )
