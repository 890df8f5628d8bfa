"""Accuracy of `tfdet locate --fix` on public scripts, unchanged and with a planted fault.

    python benchmarks/causes_public.py PYTHON {torch,tensorflow} FOLDER [NAME...] [--json FILE]

PYTHON: an interpreter with the framework.  FOLDER has the scripts; missing ones are downloaded by name and commit.
causes_public.toml lists the scripts, how they are shortened, the planted faults and the expected answers.  Each is
searched with --fix, in its own folder and home.  Promised: cause and place right of >= 95 %, the fix holds of >= 90 %,
nothing false of a clean script.  Baseline: the plain script, run just before.  Exit code 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import causes
from causes import ROOT
from trace_scripts import Script, fetch_script

sys.path[:0] = [str(ROOT / "runtime"), str(ROOT / "tests" / "runtime")]
from cause_answers import Outcome  # noqa: E402
from cause_collection import FRAMEWORKS, Cause, CauseProgram, Place  # noqa: E402

TABLE = Path(__file__).with_suffix(".toml")
MAIN = "main.py"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="an interpreter with the framework")
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("folder", type=Path, help="where the scripts are")
    parser.add_argument("names", nargs="*", help="of scripts; all, if none is named")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found")
    options = parser.parse_args()
    return causes.report(_outcomes(options), options.json)


def _outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    for name, row in rows(options.framework, options.names).items():
        with tempfile.TemporaryDirectory() as folder:
            os.environ["HOME"] = folder  # a script may keep something there
            program = create_program(name, row, options.framework, options.folder, Path(folder))
            yield causes.search(program, os.path.abspath(options.python), Path(folder), True)


def rows(framework: str, names: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """Return {name: row} of the table for a framework, with the repository and commit as "of".

    Raises:
        ValueError: a name is unknown.
    """
    table = tomllib.loads(TABLE.read_text("utf-8"))
    sources = table.pop("sources")
    if unknown := set(names) - set(table):
        raise ValueError(f"no script: {', '.join(sorted(unknown))}")
    rows_by_name = {}
    for name, row in table.items():
        source, path = row["from"]
        # Keras' scripts are all that run on TensorFlow.
        if (source == "keras") == (framework == "tensorflow") and name in (list(names) or table):
            rows_by_name[name] = {**row, "of": tuple(sources[source].split("@")), "path": path}
    return rows_by_name


def create_program(name: str, row: Mapping[str, Any], framework: str, scripts: Path, folder: Path) -> CauseProgram:
    """Write the script with its edits as a program into a folder; raise ValueError for an edit without a match."""
    text = fetch_script(scripts, Script(row["of"], row["path"], framework, "")).read_text("utf-8")
    for old, new in row["edits"]:
        if old not in text:
            raise ValueError(f"{name}: no {old!r}")
        text = text.replace(old, new)
    program = folder / framework / name
    program.mkdir(parents=True)
    (program / MAIN).write_text(text, "utf-8")
    answers = tuple(
        Cause(
            place(text, cause["kind"], cause["line"]),
            tuple(place(text, cause["kind"], line) for line in cause.get("also", [])),
        )
        for cause in row["causes"]
    )
    return CauseProgram(program, about="", causes=answers, fix="", changes=(), runs=2, first_run_only=False)


def place(text: str, kind: str, part: str) -> Place:
    """Return the only line that contains a text; raise ValueError if there is not exactly one."""
    lines = [line.strip() for line in text.splitlines() if part in line]
    if len(lines) != 1:
        raise ValueError(f"{len(lines)} lines have {part!r}")
    return Place(kind, MAIN, lines[0])


if __name__ == "__main__":
    sys.exit(main())
