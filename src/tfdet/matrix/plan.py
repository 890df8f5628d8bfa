"""The plan of an environment: its cells (source of nondeterminism x solution x device), and why some are not run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfdet.base.files import write_atomic
from tfdet.matrix.field_types import Device
from tfdet.matrix.load import Matrix
from tfdet.matrix.models import NONE, CellRule, Claim, Environment, Solution, Source
from tfdet_probe.core.plan import SCHEMA


@dataclass(frozen=True)
class PlannedCell:
    """One source under one solution on one kind of device.

    device: a value of --device.  claim_device: the device in claims, `cpu` or `gpu`.
    expect: the outcome that documents claim.  reason: why the cell is not run.
    known_failure: why a crash is expected.  except_cases: cases to which the expected outcome does not apply.
    """

    device: str
    claim_device: Device
    source: str
    solution: str
    expect: str | None = None
    reason: str | None = None
    known_failure: str | None = None
    except_cases: tuple[str, ...] = ()


def plan_cells(matrix: Matrix, key: str) -> list[PlannedCell]:
    """Return all cells of an environment, the excluded ones with their reason."""
    environment = matrix.environment(key)
    framework_matrix = matrix.for_framework(environment.framework)
    return [
        PlannedCell(
            kind.cli_name,
            kind.claim_device,
            source_key,
            solution,
            expected_outcome(source, environment, kind.claim_device, solution),
            _exclusion_reason(matrix, source, environment, kind.claim_device, solution),
            _first_reason(source.known_failures, environment, kind.claim_device, solution),
            _except_cases(claims_of(source, environment, kind.claim_device, solution)),
        )
        for kind in matrix.devices.kinds.values()
        for source_key, source in framework_matrix.sources.items()
        for solution in _solutions_to_try(framework_matrix, source)
    ]


def _solutions_to_try(matrix: Matrix, source: Source) -> list[str]:
    named = {solution for claim in source.claims for solution in claim.solutions} | set(source.try_solutions)
    keys = [key for key, solution in matrix.solutions.items() if solution.applies_to_all_ops or key in named]
    return sorted(keys, key=lambda key: matrix.solutions[key].order)  # the control, NONE, first


def claims_of(source: Source, environment: Environment, device: Device | None, solution: str) -> list[Claim]:
    """Return the claims about a cell.  device: a claim device, see DeviceRegistry.claim_device."""
    return [c for c in source.claims if c.device == device and solution in c.solutions and c.covers(environment)]


def expected_outcome(source: Source, environment: Environment, device: Device, solution: str) -> str | None:
    """Return the outcome that documents claim for all cases of a cell; None without such a claim."""
    return combine_claims([claim for claim in claims_of(source, environment, device, solution) if not claim.partly])


def combine_claims(claims: Sequence[Claim]) -> str | None:
    """Return the outcome of several claims about one cell: "raises" has precedence, as it has at run time."""
    says = [claim.outcome for claim in claims]
    return "raises" if "raises" in says else says[0] if says else None


def _except_cases(claims: Sequence[Claim]) -> tuple[str, ...]:
    return tuple(sorted({case for claim in claims for case in claim.except_cases}))


def _exclusion_reason(matrix: Matrix, source: Source, environment: Environment, device: Device, key: str) -> str | None:
    """Return why a cell is not run; None if it is.  key: of the solution."""
    solution = matrix.solutions[key]
    return (
        environment.skip_reason
        or solution.skip_reason
        or impossibility(source, environment, device, key, solution)
        or _first_reason(source.exclude, environment, device, key)
    )


def impossibility(source: Source, environment: Environment, device: Device, key: str, solution: Solution) -> str | None:
    """Return why nobody can run a cell; None if it can be run.  key: of the solution."""
    if device not in source.devices:
        return f"the source does not concern a {device}"
    if device not in solution.devices:
        return f"{key} does not concern a {device}"
    if source.package != environment.package:
        return f"{source.package} is not in this environment" if source.package else f"it is for {environment.package}"
    if not solution.available.covers(environment):
        return f"{key} does not exist in {environment.line} {environment.version}"
    return None


def _first_reason(rules: list[CellRule], environment: Environment, device: Device, solution: str) -> str | None:
    return next((rule.reason for rule in rules if rule.matches(environment, device, solution)), None)


def make_plan(matrix: Matrix, key: str, *, by_priority: bool = False) -> dict[str, Any]:
    """Return the plan that the probe reads: see tfdet_probe.core.plan.

    by_priority: rank the cells, so that the probe runs the most valuable ones first.
    """
    all_cells = plan_cells(matrix, key)
    cells = [cell for cell in all_cells if cell.reason is None]
    used = {cell.solution for cell in cells} | {NONE}
    solutions = [
        {"key": name, **solution.apply.model_dump(exclude_none=True)}
        for name, solution in matrix.solutions.items()
        if name in used and solution.apply
    ]
    return {
        "schema": SCHEMA,
        "environment": key,
        "framework": matrix.environment(key).framework,
        "determinism_variables": matrix.determinism_variables,
        "solutions": solutions,
        "cells": [
            {
                "device": c.device,
                "source": c.source,
                "solution": c.solution,
                "expect": c.expect,
                "may_fail": c.known_failure,
            }
            | ({"except_cases": list(c.except_cases)} if c.except_cases else {})
            | ({"rank": priority(matrix, key, c)} if by_priority else {})
            for c in cells
        ],
        "excluded": [
            {"device": c.device, "source": c.source, "solution": c.solution, "reason": c.reason}
            for c in all_cells
            if c.reason
        ],
    }


def priority(matrix: Matrix, key: str, cell: PlannedCell) -> list[int]:
    """Return a sort key by which the most valuable cells are first.

    First are confirmed sources under the control and under solutions that documents claim for them, then candidates,
    which have no measurement yet, then the other cells.
    """
    source, solution = matrix.source(cell.source), matrix.solution(cell.solution)
    is_claimed = cell.solution == NONE or bool(
        claims_of(source, matrix.environment(key), cell.claim_device, cell.solution)
    )
    is_confirmed = source.group == "gpu-confirmed"
    is_candidate = source.group == "gpu-candidate"
    tier = 0 if is_confirmed and is_claimed else 1 if is_candidate else 2 if is_confirmed or is_claimed else 3
    return [tier, *source.sort_key, solution.order]


def write_plan(matrix: Matrix, key: str, path: Path) -> Path:
    write_atomic(path, json.dumps(make_plan(matrix, key), indent=1, sort_keys=True) + "\n")
    return path
