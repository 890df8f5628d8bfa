"""JSON files for shields.io badges: the state of an environment or a source, for use in other READMEs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from tfdet.publish.recipe import remaining_rows
from tfdet.site.site_facts import SiteFacts
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.status import StatusCell


def files(facts: SiteFacts) -> Iterator[tuple[str, str]]:
    for key in facts.matrix.environments:
        left = len(remaining_rows(facts.status, key))
        message = f"{left} op{'s' if left != 1 else ''} to avoid" if left else "no op known to avoid"
        yield f"badges/environments/{key}.json", _badge(key, message, "yellow" if left else "green")
    for key in facts.sources:
        yield f"badges/sources/{key}.json", _badge(key, *_of(facts.by_source.get(key, [])))


def _of(cells: Sequence[StatusCell]) -> tuple[str, str]:
    """(text, color): the verdict without a solution, and whether some solution makes it deterministic."""
    differs = [c for c in cells if c.cell.verdict is Verdict.NONDETERMINISTIC and c.key.solution == "none"]
    solved = {c.key.solution for c in cells if c.cell.is_shown_deterministic}
    if differs:
        helps = f"differs; {' or '.join(sorted(solved))} helps" if solved else "differs"
        return helps, "yellow" if solved else "red"
    ran = [c for c in cells if c.was_run and c.key.solution == "none"]
    if ran and all(c.cell.verdict is Verdict.SCHEDULE_INDEPENDENT for c in ran):
        return "schedule-independent", "brightgreen"
    if any(c.was_run for c in cells):
        return "not shown to differ", "lightgrey"
    return ("documented", "blue") if cells else ("nothing known", "lightgrey")


def _badge(label: str, message: str, colour: str) -> str:
    content = {"schemaVersion": 1, "label": f"determinism: {label}", "message": message, "color": colour}
    return json.dumps(content, sort_keys=True) + "\n"
