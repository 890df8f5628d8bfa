"""Check that `trace locate` makes no false statement about programs with a known cause, or without one.

    python benchmarks/trace_claims.py ENV [PROGRAM...]

A program's docstring has `in: ENV`, `fresh: ...` if runs must not be forks of one process, and regular expressions for
the report: `says: ...` must match, `never: ...` must not. Reports must not say that probes hide a difference, that
hashes decide it, or that a kernel races, unless a program's `says` asks for it. Exit code 1 if a report is wrong.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "runtime"), str(ROOT / "tests" / "runtime"), str(ROOT / "src"), str(ROOT / "benchmarks")]
FOLDER = Path(__file__).with_name("trace_claims_programs")
NEVER_SAID = ("probes hide", "or a hash, decides", "kernel race", "something else still differs")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", choices=["tf2.21", "torch2.13"])
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    import collection
    from forks import Forks
    from trace_collection import interpreter

    failed = 0
    with Forks(interpreter(options.environment), collection.framework(options.environment)) as forks:
        for path in programs(options.environment):
            if not options.programs or path.stem in options.programs:
                statements, report = faults(path, forks)
                failed += bool(statements)
                print(f"{path.stem}: {'; '.join(statements) or 'nothing false'}", flush=True)
                print(
                    "".join(f"  | {line}\n" for line in report.splitlines()) if statements else "", end="", flush=True
                )
    return int(failed > 0)


def programs(environment: str) -> list[Path]:
    paths = sorted(FOLDER.glob("*.py"))
    return [path for path in paths if re.search(rf"^in: .*\b{re.escape(environment)}\b", path.read_text("utf-8"), re.M)]


def faults(path: Path, forks: Any) -> tuple[list[str], str]:
    """Return (the wrong or missing statements of the report on a program, the report)."""
    text = path.read_text("utf-8")
    says, never = (re.findall(rf"^{kind}: (.*)", text, re.M) for kind in ("says", "never"))
    report = search_report(path, forks)
    missing = [f"it does not say {pattern!r}" for pattern in says if not re.search(pattern, report)]
    unexpected = [pattern for pattern in NEVER_SAID if not any(pattern in expected for expected in says)]
    wrong = [f"it says {pattern!r}" for pattern in [*never, *unexpected] if re.search(pattern, report)]
    return missing + wrong, report


def search_report(path: Path, forks: Any) -> str:
    """Search a copy of a program in its own folder, where a run finds the files of earlier ones; return the report."""
    from collection import ForkedRunner, Program

    from tfdeterminism.trace.report import text
    from tfdeterminism.trace.search.progress import Progress
    from tfdeterminism.trace.search.search import Search

    with tempfile.TemporaryDirectory() as folder:
        program = Program(Path(shutil.copy(path, folder)))
        traces = Path(folder, "traces")
        traces.mkdir()
        # 8: the planned runs, for a progress line that nobody reads here.
        search = Search([str(program.path)], str(traces), progress=Progress(8, out=io.StringIO()),
                        runner=ForkedRunner(program, traces, forks))  # fmt: skip
        return text.search_text(search.search())


if __name__ == "__main__":
    raise SystemExit(main())
