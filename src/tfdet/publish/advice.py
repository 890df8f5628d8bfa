"""What the debug tool says of an op in a user's environment: sources and solutions, from claims and evidence.

`tfdet status --write` puts it into the runtime package as trace/advice.json; nothing there is written by hand.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from tfdet.matrix.models import Claim, Source
from tfdet.matrix.ranges import leading_version
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.status import Status

SCHEMA = 2  # read by runtime/tfdeterminism/trace/causes/advice.py
_ADVICE_OUTCOMES = ("deterministic", "raises")  # of a claim: what helps, and what would stop the program


def to_content(status: Status) -> dict[str, Any]:
    """sources: what a user's op may be; solutions: the lines of code behind each key; both in the matrix' order."""
    measured = _measured(status)
    ordered = sorted(status.matrix.sources.items(), key=lambda item: item[1].sort_key)
    sources = {key: _source(source, measured.get(key, {})) for key, source in ordered}
    named = {s for source in sources.values() for claim in source["claims"] for s in claim["solutions"]}
    named |= {s for source in sources.values() for device in source["measured"].values() for s in device}
    solutions = {
        key: {
            "name": s.name,
            "general": s.applies_to_all_ops,
            "own": s.is_project_patch,
            "lines": s.recipe,
            "when": s.condition,
        }
        for key, s in sorted(status.matrix.solutions.items(), key=lambda item: item[1].order)
        if key in named and s.recipe
    }
    return {"schema": SCHEMA, "sources": sources, "solutions": solutions}


def _source(source: Source, measured: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    return {
        "title": source.title,
        "ops": source.raw_ops,
        "devices": source.devices,
        "instead": source.workaround,
        "claims": [_claim(claim) for claim in source.claims if claim.outcome in _ADVICE_OUTCOMES],
        "measured": measured,
    }


def _claim(claim: Claim) -> dict[str, Any]:
    fields = claim.model_dump(include={"device", "stock", "ngc", "framework_version", "solutions"}, exclude_none=True)
    return {**fields, "says": claim.outcome}


def _measured(status: Status) -> dict[str, dict[str, dict[str, list[str]]]]:
    """{source: {device as claims call it: {solution: versions of stock TensorFlow in which it was shown to work}}}."""
    found: dict[str, dict[str, dict[str, list[str]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for cell in status.cells:
        environment = status.matrix.environments[cell.key.environment]
        version = leading_version(environment.framework_version)
        device = status.matrix.devices.claim_device(cell.key.device)
        if (
            cell.backing == "measured"
            and cell.cell.verdict is Verdict.DETERMINISTIC
            and device
            and environment.line == "stock"
            and version
        ):
            versions = found[cell.key.source][device][cell.key.solution]
            if (minor := ".".join(version.split(".")[:2])) not in versions:
                versions.append(minor)
    return found


def to_json(status: Status) -> str:
    """The file's text: an entry a line, so that a change is seen in a diff."""
    found = to_content(status)
    parts = [f'"schema": {found["schema"]}']
    for name in ("sources", "solutions"):
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found[name].items())
        parts.append(f'"{name}": {{\n{lines}\n}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"
