"""Iteration over the files of a folder in the order in which the file system lists them.

Why: the order differs between file systems and machines, and can change when files are written again.
Example: `for path in Path("data").iterdir(): rows.append(load(path))`
"""

from __future__ import annotations

from collections.abc import Iterator

from tfdet.verdicts.entropy.rule import Rule, UnitText
from tfdet.verdicts.static_analysis import Call

_FUNCTIONS = ("os.listdir", "os.scandir", "os.walk", "glob.glob", "glob.iglob")
_METHODS = ("?.iterdir", "?.rglob")  # ?.NAME: a method of an unknown object


def find(text: UnitText) -> Iterator[Call]:
    for call in text.calls:
        name = text.name_of(call)
        if (name in (*_FUNCTIONS, *_METHODS) or _is_path_glob(text, name, call.func)) and not text.is_order_free(call):
            yield text.place(call, name.removeprefix("?."))


def _is_path_glob(text: UnitText, name: str, func: object) -> bool:
    """Return whether a call is glob() of a pathlib path, as other objects have such a method, too."""
    return name == "?.glob" and "pathlib" in text.names.roots(func.value)  # type: ignore[attr-defined]


RULE = Rule("unsorted-listing", "files in the order in which a folder lists them", "sort them: sorted(...)", find)
