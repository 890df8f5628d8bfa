"""Accuracy of `trace locate` on the programs of tests/runtime/collection, for which it was not developed.

    python benchmarks/trace_collection.py ENV [PROGRAM...] [--write]

Promised: right on 95 % in TensorFlow 2.21 and PyTorch, 90 % in 2.0 and 1.14, and no clean program accused; exit code 1
if not.  Baseline: the same programs without a culprit.  --write stores the results, and the table of
docs/reference/trace-accuracy.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "runtime"), str(ROOT / "tests" / "runtime"), str(ROOT / "src")]
RESULTS = Path(__file__).with_suffix(".json")
PAGE = ROOT / "docs" / "reference" / "trace-accuracy.md"
MARKS = ("<!-- collection: written by benchmarks/trace_collection.py -->\n", "<!-- end of collection -->")
PROMISED = {"tf2.21": 0.95, "tf2.0": 0.9, "tf1.14": 0.9, "torch2.13": 0.95}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", choices=sorted(PROMISED))
    parser.add_argument("programs", nargs="*")
    parser.add_argument(
        "--write", action="store_true", help="keep the results, and the table of docs/reference/trace-accuracy.md"
    )
    options = parser.parse_args()
    faults_by_program = run(options.environment, options.programs, options.write)
    right = sum(not faults for faults in faults_by_program.values())
    print(f"{options.environment}: {right} of {len(faults_by_program)} right")
    accused = any(faults and name.startswith("clean_") for name, faults in faults_by_program.items())
    return int(accused or right < PROMISED[options.environment] * len(faults_by_program))


def run(environment: str, names: list[str], should_write: bool) -> dict[str, list[str]]:
    """Return {program: its faults}; store each result at once, as all programs take hours on a busy machine."""
    import collection
    from forks import Forks

    faults_by_program = {}
    chosen = [program for program in collection.programs(environment) if not names or program.name in names]
    with Forks(interpreter(environment), collection.framework(environment)) as forks:
        for program in chosen:
            start = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                faults_by_program[program.name] = collection.faults(program, forks, Path(folder))
            text = "; ".join(faults_by_program[program.name]) or "right"
            if should_write:
                write(environment, {program.name: faults_by_program[program.name]})
            print(f"{environment} {program.name}: {text} ({time.perf_counter() - start:.0f} s)", flush=True)
    return faults_by_program


def interpreter(environment: str) -> Path:
    from tfdet.base.paths import find_project
    from tfdet.engines.venv import VenvEngine
    from tfdet.matrix.load import load_matrix

    project = find_project()
    return VenvEngine(project).interpreter(environment, load_matrix(project.matrix).environment(environment), "cpu")


def write(environment: str, faults_by_program: dict[str, list[str]]) -> None:
    stored = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    stored[environment] = {**stored.get(environment, {}), **faults_by_program}
    RESULTS.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", "utf-8")
    before, _, rest = PAGE.read_text("utf-8").partition(MARKS[0])
    PAGE.write_text(before + MARKS[0] + table(stored) + MARKS[1] + rest.partition(MARKS[1])[2], "utf-8")


def table(stored: dict[str, dict[str, list[str]]]) -> str:
    """Return the table by form of program, with a list of the failures."""
    import collection

    environments = [env for env in collection.ENVIRONMENTS + collection.TORCH_ENVIRONMENTS if env in stored]
    forms = {program.name: "clean" if program.outcome == "same" else program.form for env in environments
             for program in collection.programs(env)}  # fmt: skip
    lines = ["", f"| programs | {' | '.join(environments)} |", "|:--|" + "--:|" * len(environments)]
    for form in [*sorted({*forms.values()} - {"clean"}), "clean", "all"]:
        cells = [share([not faults for name, faults in stored[env].items() if form in ("all", forms[name])])
                 for env in environments]  # fmt: skip
        lines.append(f"| {form} | {' | '.join(cells)} |")
    failed = [f"- `{name}` in {env}: {'; '.join(faults)}" for env in environments
              for name, faults in sorted(stored[env].items()) if faults]  # fmt: skip
    return "\n".join([*lines, "", "Not right:" if failed else "None fails.", "", *failed, ""])


def share(are_right: list[bool]) -> str:
    counts = Counter(are_right)
    return f"{counts[True]} of {len(are_right)}" if are_right else "–"


if __name__ == "__main__":
    sys.exit(main())
