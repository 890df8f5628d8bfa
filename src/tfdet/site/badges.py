"""JSON files for shields.io badges: the state of an environment or a source, for use in other READMEs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from tfdet.publish.recipe import remaining_rows
from tfdet.site.site_facts import SiteFacts
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.status import StatusCell


def files(facts: SiteFacts) -> Iterator[tuple[str, str]]:
    """Yield (path, JSON) of the badge of each environment and source."""
    for key in facts.matrix.environments:
        remaining = len(remaining_rows(facts.status, key))
        message = f"{remaining} op{'s' if remaining != 1 else ''} to avoid" if remaining else "no op known to avoid"
        yield f"badges/environments/{key}.json", _badge(key, message, "yellow" if remaining else "green")
    for key in facts.sources:
        yield f"badges/sources/{key}.json", _badge(key, *_source_state(facts.cells_by_source.get(key, [])))


def _source_state(cells: Sequence[StatusCell]) -> tuple[str, str]:
    """Return (text, color): the verdict without a solution, and the solutions that make it deterministic."""
    differs = [
        cell for cell in cells if cell.inferred.verdict is Verdict.NONDETERMINISTIC and cell.key.solution == "none"
    ]
    helping = {cell.key.solution for cell in cells if cell.inferred.is_shown_deterministic}
    if differs:
        text = f"differs; {' or '.join(sorted(helping))} helps" if helping else "differs"
        return text, "yellow" if helping else "red"
    ran = [cell for cell in cells if cell.was_run and cell.key.solution == "none"]
    if ran and all(cell.inferred.verdict is Verdict.SCHEDULE_INDEPENDENT for cell in ran):
        return "schedule-independent", "brightgreen"
    if any(cell.was_run for cell in cells):
        return "not shown to differ", "lightgrey"
    return ("documented", "blue") if cells else ("nothing known", "lightgrey")


def _badge(label: str, message: str, color: str) -> str:
    content = {"schemaVersion": 1, "label": f"determinism: {label}", "message": message, "color": color}
    return json.dumps(content, sort_keys=True) + "\n"
