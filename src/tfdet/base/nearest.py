"""Search for the known names nearest to a misspelled one, for messages with "did you mean"."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

MAX_RESULTS = 3
_WORD_AND_VERSION = re.compile(r"(?P<word>[a-z]+)[-_ ]?(?P<version>[0-9][0-9.]*)")
_LOOK_ALIKES = str.maketrans("oil|sz_ ", "011152--")  # characters that are easily confused


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return at most MAX_RESULTS known names, the nearest first; none if no name is near.

    If a name differs in look-alike characters only (tf2.O), no other names are returned; otherwise those with the
    fewest edits, or else its abbreviations (tf2.0 for tensorflow2.0), or those of which it is a part (h100). A name
    that begins with the given one counts as one edit.
    """
    skeleton, names = _skeleton(name), list(dict.fromkeys(known))
    if not skeleton:
        return []
    if look_alikes := [candidate for candidate in names if _skeleton(candidate) == skeleton]:
        return look_alikes[:MAX_RESULTS]
    costs = {candidate: _cost(skeleton, _skeleton(candidate)) for candidate in names}
    near = sorted((cost, _natural_key(candidate), candidate) for candidate, cost in costs.items() if cost is not None)
    if near:
        return [candidate for cost, _, candidate in near if cost[0] <= near[0][0][0]][:MAX_RESULTS]
    if short := sorted((candidate for candidate in names if _abbreviates(candidate, name)), key=_natural_key):
        return short[:MAX_RESULTS]
    if containing := [candidate for candidate in names if skeleton in _skeleton(candidate).split("-")]:
        return containing[:MAX_RESULTS]
    by_skeleton = {_skeleton(candidate): candidate for candidate in names}
    matches = difflib.get_close_matches(skeleton, by_skeleton, n=MAX_RESULTS, cutoff=0.6)
    return [by_skeleton[match] for match in matches]


def _abbreviates(short: str, name: str) -> bool:
    """Return whether `short` has the version of the name, or one that begins with it, and some letters of its word."""
    short_parts, parts = (_WORD_AND_VERSION.fullmatch(text.casefold().strip()) for text in (short, name))
    if not short_parts or not parts or short_parts["word"][0] != parts["word"][0]:
        return False
    letters = iter(parts["word"])
    has_letters = all(letter in letters for letter in short_parts["word"])
    return has_letters and f"{short_parts['version']}.".startswith(f"{parts['version']}.")


def _cost(name: str, candidate: str) -> tuple[int, int] | None:
    """Return (edits, characters after the common prefix); None if the candidate is too far from the name."""
    if candidate.startswith(name) and len(name) > 1:
        return 1, len(candidate) - len(name)
    edits = distance(name, candidate)
    prefix = next((i for i, (x, y) in enumerate(zip(name, candidate, strict=False)) if x != y), len(candidate))
    return (edits, len(name) - prefix) if edits <= max(1, len(name) // 4) else None


def distance(first: str, second: str) -> int:
    """Return the Damerau-Levenshtein distance: insertions, deletions, replacements, and swaps of neighbors."""
    before_last: list[int] = []
    last = list(range(len(second) + 1))
    for i, x in enumerate(first, 1):
        row = [i]
        for j, y in enumerate(second, 1):
            row.append(min(row[-1] + 1, last[j] + 1, last[j - 1] + (x != y)))
            if i > 1 and j > 1 and x == second[j - 2] and first[i - 2] == y:
                row[-1] = min(row[-1], before_last[j - 2] + 1)
        before_last, last = last, row
    return last[-1]


def _skeleton(name: str) -> str:
    """Return the name in lower case, with one character for each group of look-alikes."""
    return name.casefold().translate(_LOOK_ALIKES)


def _natural_key(name: str) -> list[tuple[int, int | str]]:
    """Return a sort key that compares digits as numbers: tf2.9 before tf2.10."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.findall(r"[0-9]+|[^0-9]+", name)]
