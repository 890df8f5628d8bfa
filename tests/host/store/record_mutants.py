"""Mutants of real records: records that claim something else than the run that wrote them."""

from __future__ import annotations

import copy as copies
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from records import with_checksum

HUGE = 10**400
Content = dict[str, Any]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value in a record, in tables and lists, too."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path_of_leaf for key, item in inside for path_of_leaf in [(*path, key), *leaves(item, (*path, key))]]


def other(rng: random.Random, value: Any) -> Any:
    """Return another value: a near one, a distant one, one of another type, or None."""
    pool: list[Any] = [None, 0, 1, -1, 2, 999, 2**63, HUGE, 0.5, 1e308, True, "", "a" * 64, "cpu", [], {}, [0]]
    pool += ["equal", "differs", "raises", "unsupported", "crashed", "timed-out", "2019-01-01T00:00:00Z", "\x1b[2J"]
    if isinstance(value, int | float) and not isinstance(value, bool):
        pool += [value + 1, value - 1, value * 2, value * 10, -value] * 4
    if isinstance(value, str):
        pool += [value + "x", value[1:], value[::-1], value.upper(), value * 2, value.replace("0", "1")] * 3
    if isinstance(value, list):
        pool += [value + value, value[1:], [*value, "CPU:1"]] * 3
    return rng.choice(pool)


def mutate(rng: random.Random, content: Content) -> Content:
    """Return a copy in which up to three values are replaced or removed."""
    changed = copies.deepcopy(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        into, key = _place(changed, rng.choice(leaves(changed)))
        if rng.random() < 0.05 and isinstance(into, dict):
            del into[key]
        else:
            into[key] = other(rng, into[key])
    return changed


def _place(content: Content, path: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the table or list that a path ends in, and the key there."""
    into: Any = content
    for key in path[:-1]:
        into = into[key]
    return into, path[-1]


# Fields that agree with each other: what is taken together from another record may be possible.
GROUPS = [
    ("device", "ran_on", "stack", "gpu_state", "kernels"),
    ("device", "ran_on"),
    ("device",),
    ("stack",),
    ("environment", "framework"),
    ("environment",),
    ("source", "case", "mode", "case_hash"),
    ("case", "mode", "case_hash"),
    ("case_hash",),
    ("solution", "determinism_environment", "threads"),
    ("solution",),
    ("machine",),
    ("observation", "runs", "repeats", "relaunches", "differed", "distinct", "first_differing", "max_ulp",
     "max_absolute", "digests", "median_seconds", "ran_on", "error", "proof", "ranks"),
    ("proof",),
    ("ranks",),
    ("started", "duration_seconds"),
]  # fmt: skip
# Values as they stand in a line of JSON; most are invalid, or no record writes them so.
RAW = ["NaN", "-Infinity", "1e400", "1E2", "1.0", "-0", "-0.0", "1e-400", str(2**70), str(2**64), "01", "9" * 5000,
       '"\\ud800"', '"\\u0061"', "[" * 200 + "]" * 200, "[" * 99_999, '{"a":1,"a":1}', "True", ""]  # fmt: skip
TEXTS = ["", " ", " x", "x ", "\0", "\x7f", "\u0430", "\u2028", "tf2.O", "t\u0192", "x" * 3_000_000, "x" * 601,
         "é" * 90, "../x", "a/b", ".", "con", "\n", "cpu-fast", "none ", "None", "sass", "9.0", "venv"]  # fmt: skip


def _change(rng: random.Random, content: Content, others: Sequence[Content]) -> None:
    into, key = _place(content, rng.choice(leaves(content)))
    into[key] = other(rng, into[key])


def _say(rng: random.Random, content: Content, others: Sequence[Content]) -> None:
    """Replace a value by a strange text, or add one to it."""
    into, key = _place(content, rng.choice(leaves(content)))
    text = rng.choice(TEXTS)
    into[key] = rng.choice([text, text, f"{into[key]}{text[:9]}", f"{text[:9]}{into[key]}"])


def _write(rng: random.Random, content: Content, others: Sequence[Content]) -> None:
    """Leave a mark that `line_of` replaces."""
    into, key = _place(content, rng.choice(leaves(content)))
    into[key] = f"@{rng.randrange(len(RAW))}@"


def _remove(rng: random.Random, content: Content, others: Sequence[Content]) -> None:
    into, key = _place(content, rng.choice(leaves(content)))
    del into[key]


def _add(rng: random.Random, content: Content, others: Sequence[Content]) -> None:
    tables = [content, *(value for path in leaves(content) if isinstance(value := _value(content, path), dict))]
    donor = rng.choice(others)
    name = rng.choice([*donor, *donor["stack"], "zz", "", "__class__", "schema_", "line", "_line", "Checksum"])
    rng.choice(tables)[name] = rng.choice([None, 0, "x", donor.get(name), donor["stack"].get(name)])


def _retype(rng: random.Random, content: Content, others: Sequence[Content]) -> None:
    into, key = _place(content, rng.choice(leaves(content)))
    value = into[key]
    forms = [str(value), [value], {"value": value}, None, bool(value), json.dumps(value)]
    if isinstance(value, int | float):
        forms += [float(value), int(value), str(value)]
    into[key] = rng.choice(forms)


def _duplicate(rng: random.Random, content: Content, others: Sequence[Content]) -> None:
    """Give a list an item of its own again, or write a name twice (see `line_of`)."""
    lists = [value for path in leaves(content) if isinstance(value := _value(content, path), list) and value]
    if lists and rng.random() < 0.7:
        chosen = rng.choice(lists)
        chosen.insert(rng.randrange(len(chosen) + 1), copies.deepcopy(rng.choice(chosen)))
    else:
        content["@twice@"] = rng.choice(list(content))


def _reorder(rng: random.Random, content: Content, others: Sequence[Content]) -> None:
    lists = [value for path in leaves(content) if isinstance(value := _value(content, path), list) and len(value) > 1]
    if lists and rng.random() < 0.7:
        rng.shuffle(rng.choice(lists))
    else:
        content["@unsorted@"] = True


def _bloat(rng: random.Random, content: Content, others: Sequence[Content]) -> None:
    into, key = _place(content, rng.choice(leaves(content)))
    value = into[key]
    if isinstance(value, list):
        into[key] = value * rng.choice([2, 17, 65, 5000]) or ["x"] * 65
    elif isinstance(value, dict):
        into[key] = {**value, **{f"k{number}": "v" for number in range(rng.choice([1, 33, 65, 5000]))}}
    else:
        into[key] = str(value) * rng.choice([2, 40, 601, 100_000])


def _borrow(rng: random.Random, content: Content, others: Sequence[Content]) -> None:
    """Take fields of another record."""
    donor = rng.choice(others)
    if rng.random() < 0.25:
        path = rng.choice(leaves(content))
        into, key = _place(content, path)
        into[key] = copies.deepcopy(_value(donor, path, into[key]))
        return
    for name in rng.choice(GROUPS):
        content.pop(name, None)
        if name in donor:
            content[name] = copies.deepcopy(donor[name])


def _value(content: Content, path: tuple[Any, ...], default: Any = None) -> Any:
    value: Any = content
    for key in path:
        try:
            value = value[key]
        except (LookupError, TypeError):
            return default
    return value


# Each changes `content` in place; `others`: records whose values it may take.
MUTATIONS: list[Callable[[random.Random, Content, Sequence[Content]], None]] = [
    _change, _change, _say, _write, _remove, _add, _retype, _duplicate, _reorder, _bloat, *[_borrow] * 6,
]  # fmt: skip


def mutant(rng: random.Random, genuine: Sequence[Content]) -> bytes:
    """Return the line of a mutant, mostly with a fitting checksum.

    genuine: the records of which one is changed, with values of the others.
    """
    content = copies.deepcopy(rng.choice(genuine))
    for _ in range(rng.choice([1, 1, 1, 1, 2, 2, 3])):
        rng.choice(MUTATIONS)(rng, content, genuine)
        if not leaves(content):
            break
    return line_of(rng, content, has_checksum=rng.random() < 0.95)


def line_of(rng: random.Random, content: Content, *, has_checksum: bool) -> bytes:
    """Return the line of a mutant with its marks replaced; not `has_checksum`: with the one that it had."""
    content = dict(content)
    twice, is_unsorted = content.pop("@twice@", None), content.pop("@unsorted@", False)
    names = sorted(content)
    if is_unsorted:
        rng.shuffle(names)
    text = json.dumps({name: content[name] for name in names}, separators=(",", ":"), sort_keys=not is_unsorted)
    for number, token in enumerate(RAW):
        text = text.replace(f'"@{number}@"', token)
    if twice in content:
        text = text.replace(f'"{twice}":', f'"{twice}":{json.dumps(content[twice])},"{twice}":', 1)
    line = text.encode("ascii") + b"\n"
    return with_checksum(line) if has_checksum else line
