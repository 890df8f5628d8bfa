"""Compare an answer of `locate --json` with the expected causes of a program of the collection of causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cause_collection import Cause, CauseProgram

# Kinds of cause that pin a whole process, and so may have no line: the line of the first culprit is judged instead.
COARSE = {"addresses", "switches", "one-thread", "one-worker"}


@dataclass(frozen=True)
class Outcome:
    """What a search said of a program, beside its answers.

    kinds, places: whether those of all causes, and no others, are named; None for a clean program.
    fix: whether it holds; None: not tried.  false: whether something false was said.
    said: the causes that were named, as text.  times: the search's time in runs of the plain program.
    """

    program: str
    kinds: bool | None
    places: bool | None
    fix: bool | None
    false: bool
    runs: int
    times: float
    said: str


def compared(program: CauseProgram, answer: Mapping[str, Any], fix: bool | None, times: float) -> Outcome:
    """Compare an answer of `locate --json` with the program's causes; return the Outcome."""
    named = answer.get("causes") or []
    description = (
        "; ".join(f"{found_cause['kind']} at {_describe_places(found_cause)}" for found_cause in named)
        or f"no cause ({answer.get('result')})"
    )
    runs = (answer.get("interventions") or {}).get("total_runs") or answer.get("runs") or 0
    if not program.causes:
        wrong = bool(named) or answer.get("result") != "same"
        return Outcome(program.name, None, None, None, wrong, runs, times, description)
    pairs = pair(program, named)
    kinds = len(named) == len(program.causes) and len(pairs) == len(named)
    places_right = kinds and all(is_place_right(program, cause, named_cause, answer) for cause, named_cause in pairs)
    return Outcome(program.name, kinds, places_right, bool(fix), len(pairs) < len(named), runs, times, description)


def _describe_places(cause: Mapping[str, Any]) -> str:
    return (
        ", ".join(f"{Path(location['file'] or '').name}:{location['line']}" for location in cause["places"])
        or "no line"
    )


def pair(program: CauseProgram, named: Sequence[Mapping[str, Any]]) -> list[tuple[Cause, Mapping[str, Any]]]:
    """Pair each named cause with the program's cause that it is; a cause at a right place is preferred."""
    pairs, open_to = [], list(program.causes)
    for found_cause in named:
        fitting = [cause for cause in open_to if any(place.kind == found_cause["kind"] for place in cause.places)]
        fitting.sort(key=lambda cause: not is_place_right(program, cause, found_cause, {}))
        if fitting:
            pairs.append((fitting[0], found_cause))
            open_to.remove(fitting[0])
    return pairs


def is_place_right(program: CauseProgram, cause: Cause, named: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Whether each named line is one of the cause's; a coarse kind without lines has its first culprit's."""
    lines = list(named["places"])
    if not lines and named["kind"] in COARSE:
        lines = list(answer.get("culprits") or [])[:1]
    right = [place for place in cause.places if place.kind == named["kind"]]
    return bool(lines) and all(any(place.is_at(program.folder, line) for place in right) for line in lines)
