"""Does `locate` prove the causes in public scripts that nobody here wrote, as they are and with a planted fault?

    python benchmarks/causes_public.py PYTHON {torch,tensorflow} FOLDER [NAME...] [--json FILE]

PYTHON: an interpreter with the framework.  FOLDER holds the scripts; what is not there is fetched by name and commit.
The scripts, how they are shortened, what is planted and what has to be named: causes_public.toml.  Each is searched
with --fix, in a folder and a home of its own.  Promised: cause and place right of >= 95 %, the fix holds of >= 90 %,
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
from trace_scripts import Script, located

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
    return causes.reported(_outcomes(options), options.json)


def _outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    for name, row in rows(options.framework, options.names).items():
        with tempfile.TemporaryDirectory() as folder:
            os.environ["HOME"] = folder  # a script may keep something there
            program = made(name, row, options.framework, options.folder, Path(folder))
            yield causes.searched(program, os.path.abspath(options.python), Path(folder), True)


def rows(framework: str, names: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """{name: row} of the table for a framework, with "of": the repository and commit. Raises ValueError for a name that
    there is not."""
    every = tomllib.loads(TABLE.read_text("utf-8"))
    sources = every.pop("sources")
    if unknown := set(names) - set(every):
        raise ValueError(f"no script: {', '.join(sorted(unknown))}")
    found = {}
    for name, row in every.items():
        source, path = row["from"]
        if (source == "keras") == (framework == "tensorflow") and name in (list(names) or every):
            found[name] = {**row, "of": tuple(sources[source].split("@")), "path": path}
    return found


def made(name: str, row: Mapping[str, Any], framework: str, scripts: Path, folder: Path) -> CauseProgram:
    """The script with its edits, as a program of a folder. Raises ValueError for an edit that finds nothing."""
    text = located(scripts, Script(row["of"], row["path"], framework, "")).read_text("utf-8")
    for old, new in row["edits"]:
        if old not in text:
            raise ValueError(f"{name}: no {old!r}")
        text = text.replace(old, new)
    program = folder / framework / name
    program.mkdir(parents=True)
    (program / MAIN).write_text(text, "utf-8")
    answers = tuple(
        Cause(
            place(text, one["kind"], one["line"]), tuple(place(text, one["kind"], part) for part in one.get("also", []))
        )
        for one in row["causes"]
    )
    return CauseProgram(program, "", answers, "", (), 2, False)


def place(text: str, kind: str, part: str) -> Place:
    """The line that has this part. Raises ValueError unless there is exactly one."""
    found = [line.strip() for line in text.splitlines() if part in line]
    if len(found) != 1:
        raise ValueError(f"{len(found)} lines have {part!r}")
    return Place(kind, MAIN, found[0])


if __name__ == "__main__":
    sys.exit(main())
