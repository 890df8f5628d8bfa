"""Does `trace locate` say nothing false? Programs with a known cause, or none, each searched whole as a stranger would.

    python benchmarks/trace_claims.py ENV [PROGRAM...]

A program's docstring says `in: ENV`, `fresh: ...` where runs must not be forks of one process, and regular expressions
of what is said for people: `says: ...` must be found, `never: ...` must not. Nowhere are probes to hide a difference,
hashes to decide it, or a kernel to race, but where a program's `says` asks for it. Exit code 1 if anything is false.
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
NEVER = ("probes hide", "or a hash, decides", "kernel race", "something else still differs")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", choices=["tf2.21", "torch2.13"])
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    import collection
    from forks import Forks
    from trace_collection import interpreter

    wrong = 0
    with Forks(interpreter(options.environment), collection.framework(options.environment)) as forks:
        for path in programs(options.environment):
            if not options.programs or path.stem in options.programs:
                false, words = faults(path, forks)
                wrong += bool(false)
                print(f"{path.stem}: {'; '.join(false) or 'nothing false'}", flush=True)
                print("".join(f"  | {line}\n" for line in words.splitlines()) if false else "", end="", flush=True)
    return int(wrong > 0)


def programs(environment: str) -> list[Path]:
    every = sorted(FOLDER.glob("*.py"))
    return [path for path in every if re.search(rf"^in: .*\b{re.escape(environment)}\b", path.read_text("utf-8"), re.M)]


def faults(path: Path, forks: Any) -> tuple[list[str], str]:
    """What is said and should not be, or the other way round; and what is said, for people."""
    text = path.read_text("utf-8")
    says, never = (re.findall(rf"^{kind}: (.*)", text, re.M) for kind in ("says", "never"))
    words = searched(path, forks)
    false = [f"it does not say {one!r}" for one in says if not re.search(one, words)]
    unasked = [one for one in NEVER if not any(one in asked for asked in says)]
    return false + [f"it says {one!r}" for one in [*never, *unasked] if re.search(one, words)], words


def searched(path: Path, forks: Any) -> str:
    """In a folder of its own: what a run leaves there the next one finds."""
    from collection import Forked, Program

    from tfdeterminism.trace.report import text
    from tfdeterminism.trace.search.progress import Progress
    from tfdeterminism.trace.search.search import Search

    with tempfile.TemporaryDirectory() as folder:
        program = Program(Path(shutil.copy(path, folder)))
        kept = Path(folder, "traces")
        kept.mkdir()
        search = Search([str(program.path)], str(kept), progress=Progress(8, out=io.StringIO()),
                        launcher=Forked(program, kept, forks))  # fmt: skip
        return text.search_text(search.search())


if __name__ == "__main__":
    raise SystemExit(main())
