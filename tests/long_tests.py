"""List the tests that take long: what CI prints of them is given, and tests/long_tests.txt is what comes out.

    nox -t tests -- --durations=0 --durations-min=2 > LOG; python tests/long_tests.py LOG... > tests/long_tests.txt

Each runs on one day of weekly.LONG_DAYS. Tests that weekly.py spreads over days by a decorator are left out.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MIN_SECONDS = 5.0
_LINE = re.compile(r"^ *([\d.]+)s (?:call|setup) +(tests/\S.*)$", re.M)


def main() -> None:
    seconds: Counter[str] = Counter()
    for path in sys.argv[1:]:
        for duration, name in _LINE.findall(Path(path).read_text("utf-8")):
            seconds[name] += float(duration)  # type: ignore[assignment]
    known = {function for file in {name.partition("::")[0] for name in seconds} for function in listed_functions(file)}
    for name, duration in seconds.most_common():
        if duration >= MIN_SECONDS and name.partition("[")[0] in known:
            print(name)


def listed_functions(file: str) -> Iterator[str]:
    """Yield the names, as pytest gives them, of a file's tests that may run on some days only.

    No decorator of weekly.py spreads them over days, and they have no snapshot: one that is not used is an error.
    """
    path = ROOT / file
    for node in ast.parse(path.read_text("utf-8")).body if path.is_file() else ():
        if not isinstance(node, ast.FunctionDef):
            continue
        has_snapshot = any(argument.arg == "snapshot" for argument in node.args.args)
        if not has_snapshot and not any("weekly" in ast.unparse(one) for one in node.decorator_list):
            yield f"{file}::{node.name}"


if __name__ == "__main__":
    main()
