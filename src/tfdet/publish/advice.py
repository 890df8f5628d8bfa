"""The advice that the debug tool gives on a user's op: its sources and their solutions, from claims and evidence.

`tfdet status --write` writes it into the runtime package as trace/advice.json, which is never edited by hand.
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
_ADVICE_OUTCOMES = ("deterministic", "raises")  # of claims that become advice: what helps, and what stops the program


def to_content(status: Status) -> dict[str, Any]:
    """Return the content of advice.json, in the order of the matrix.

    sources: all known sources.  solutions: the lines of code of each solution that these name.
    """
    measured = _measured(status)
    ordered = sorted(status.matrix.sources.items(), key=lambda item: item[1].sort_key)
    sources = {key: _source(source, measured.get(key, {})) for key, source in ordered}
    named = {key for source in sources.values() for claim in source["claims"] for key in claim["solutions"]}
    named |= {name for source in sources.values() for entry in source["measured"].values() for name in entry}
    solutions = {
        key: {
            "name": solution.name,
            "general": solution.applies_to_all_ops,
            "own": solution.is_project_patch,
            "lines": solution.recipe,
            "when": solution.condition,
        }
        for key, solution in sorted(status.matrix.solutions.items(), key=lambda item: item[1].order)
        if key in named and solution.recipe
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
    """Return {source: {claim's device: {solution: minor versions of TensorFlow in which it was shown to work}}}."""
    measured: dict[str, dict[str, dict[str, list[str]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for cell in status.cells:
        environment = status.matrix.environments[cell.key.environment]
        version = leading_version(environment.framework_version)
        device = status.matrix.devices.claim_device(cell.key.device)
        if (
            cell.backing == "measured"
            and cell.inferred.verdict is Verdict.DETERMINISTIC
            and device
            and environment.line == "stock"  # built by the framework's project, not by NVIDIA
            and version
        ):
            versions = measured[cell.key.source][device][cell.key.solution]
            if (minor := ".".join(version.split(".")[:2])) not in versions:
                versions.append(minor)
    return measured


def to_json(status: Status) -> str:
    """Return the file's text, with one entry per line for readable diffs."""
    content = to_content(status)
    parts = [f'"schema": {content["schema"]}']
    for name in ("sources", "solutions"):
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content[name].items())
        parts.append(f'"{name}": {{\n{lines}\n}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"
