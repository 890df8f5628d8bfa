"""Which of the known names was meant: the one place for every "did you mean"."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

MOST = 3
_ALIKE = str.maketrans("oil|sz_ ", "011152--")  # each is read, or typed, for the other


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The best first, at most MOST; none where nothing is near.

    A name that differs in look-alike characters alone (tf2.O) is the only answer. Else few edits count, fewer where
    the beginnings are the same, and names that begin as the given one does.
    """
    asked, names = _skeleton(name), list(dict.fromkeys(known))
    if not asked:
        return []
    if same := [one for one in names if _skeleton(one) == asked]:
        return same[:MOST]
    found = sorted((cost, _natural(one), one) for one in names if (cost := _cost(asked, _skeleton(one))) is not None)
    if found:
        return [one for cost, _, one in found if cost[0] <= found[0][0][0]][:MOST]
    skeletons = {_skeleton(one): one for one in names}
    return [skeletons[one] for one in difflib.get_close_matches(asked, skeletons, n=MOST, cutoff=0.6)]


def _cost(asked: str, one: str) -> tuple[int, int] | None:
    """(edits, characters of no shared beginning); None where it is too far off. A beginning alone is one edit."""
    if one.startswith(asked) and len(asked) > 1:
        return 1, len(one) - len(asked)
    edits = distance(asked, one)
    shared = next((at for at, (a, b) in enumerate(zip(asked, one, strict=False)) if a != b), len(one))
    return (edits, len(asked) - shared) if edits <= max(1, len(asked) // 4) else None


def distance(one: str, other: str) -> int:
    """Insertions, deletions, replacements, and swaps of neighbors that make the one the other."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            row.append(min(row[-1] + 1, last[j] + 1, last[j - 1] + (a != b)))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                row[-1] = min(row[-1], before[j - 2] + 1)
        before, last = last, row
    return last[-1]


def _skeleton(name: str) -> str:
    return name.casefold().translate(_ALIKE)


def _natural(name: str) -> list[tuple[int, int | str]]:
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.findall(r"[0-9]+|[^0-9]+", name)]
