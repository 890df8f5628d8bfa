"""Is `trace locate` right on programs that it has not been made for? Each of tests/runtime/collection, searched whole.

    python benchmarks/trace_collection.py ENV [PROGRAM...] [--write]

Promised: right on 95 % in TensorFlow 2.21 and PyTorch, 90 % in 2.0 and 1.14, and no clean program accused; exit code 1
if not.  Baseline: the same programs without a culprit.  --write keeps what was found, and the table of
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
KEPT = Path(__file__).with_suffix(".json")
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
    found = run(options.environment, options.programs, options.write)
    right = sum(not wrong for wrong in found.values())
    print(f"{options.environment}: {right} of {len(found)} right")
    accused = any(wrong and name.startswith("clean_") for name, wrong in found.items())
    return int(accused or right < PROMISED[options.environment] * len(found))


def run(environment: str, only: list[str], keep: bool) -> dict[str, list[str]]:
    """{program: what is wrong}; kept one by one, as all of them take hours on a busy machine."""
    import collection
    from forks import Forks

    found = {}
    chosen = [one for one in collection.programs(environment) if not only or one.name in only]
    with Forks(interpreter(environment), collection.framework(environment)) as forks:
        for program in chosen:
            started = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                found[program.name] = collection.faults(program, forks, Path(folder))
            words = "; ".join(found[program.name]) or "right"
            if keep:
                write(environment, {program.name: found[program.name]})
            print(f"{environment} {program.name}: {words} ({time.perf_counter() - started:.0f} s)", flush=True)
    return found


def interpreter(environment: str) -> Path:
    from tfdet.base.paths import find_project
    from tfdet.engines.venv import VenvEngine
    from tfdet.matrix.load import load_matrix

    project = find_project()
    return VenvEngine(project).interpreter(environment, load_matrix(project.matrix).environment(environment), "cpu")


def write(environment: str, found: dict[str, list[str]]) -> None:
    kept = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    kept[environment] = {**kept.get(environment, {}), **found}
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")
    before, _, rest = PAGE.read_text("utf-8").partition(MARKS[0])
    PAGE.write_text(before + MARKS[0] + table(kept) + MARKS[1] + rest.partition(MARKS[1])[2], "utf-8")


def table(kept: dict[str, dict[str, list[str]]]) -> str:
    """By form of program, and each failure by name."""
    import collection

    environments = [one for one in collection.ENVIRONMENTS + collection.TORCH_ENVIRONMENTS if one in kept]
    forms = {one.name: "clean" if not one.expected else one.form for env in environments
             for one in collection.programs(env)}  # fmt: skip
    lines = ["", f"| programs | {' | '.join(environments)} |", "|:--|" + "--:|" * len(environments)]
    for form in [*sorted({*forms.values()} - {"clean"}), "clean", "all"]:
        cells = [share([not wrong for name, wrong in kept[env].items() if form in ("all", forms[name])])
                 for env in environments]  # fmt: skip
        lines.append(f"| {form} | {' | '.join(cells)} |")
    failed = [f"- `{name}` in {env}: {'; '.join(wrong)}" for env in environments
              for name, wrong in sorted(kept[env].items()) if wrong]  # fmt: skip
    return "\n".join([*lines, "", "Not right:" if failed else "None fails.", "", *failed, ""])


def share(right: list[bool]) -> str:
    count = Counter(right)
    return f"{count[True]} of {len(right)}" if right else "–"


if __name__ == "__main__":
    sys.exit(main())
