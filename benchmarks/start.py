"""The CPU seconds of `tfdet envs` from start to end, as a median (promise: <= 0.3).

Usage: python benchmarks/start.py [RUNS]     default: 9
Baselines, measured alternately: an empty Python program, and imports of the libraries that read the command line and
the matrix.  Modules are compiled before, as for all but the first start, even if the environment disables bytecode.
"""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import typer": ["-c", "import typer"],
    "import typer, pydantic, rich.table": ["-c", "import typer, rich.table; from pydantic import BaseModel"],
    "tfdet envs": ["-m", "tfdet", "envs"],
}
ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def cpu_seconds(arguments: list[str]) -> float:
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, env=ENVIRON)
    _, process.returncode, usage = os.wait4(process.pid, 0)
    if process.returncode:
        sys.exit(f"{arguments} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    runs = int(sys.argv[1]) if sys.argv[1:] else 9
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for arguments in COMMANDS.values():
        cpu_seconds(arguments)
    for _ in range(runs):
        for name, arguments in COMMANDS.items():
            times[name].append(cpu_seconds(arguments))
    for name, seconds in times.items():
        print(f"{name}: {median(seconds):.2f} s of CPU (median of {runs}; {min(seconds):.2f} to {max(seconds):.2f})")


if __name__ == "__main__":
    main()
