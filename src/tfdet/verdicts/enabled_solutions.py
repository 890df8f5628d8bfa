"""Which solutions are in effect: those that are asked for, and those that a program's own lines switch on."""

from __future__ import annotations

from collections.abc import Iterable

from tfdet.matrix.call_patterns import ApiNames, CallPattern, Calls, patterns_by_name
from tfdet.matrix.load import Matrix
from tfdet.matrix.models import Solution
from tfdet.verdicts.programs import Call, Program
from tfdet.verdicts.reachable_sources import argument_matches


def in_effect(matrix: Matrix, program: Program | None, named: Iterable[str]) -> set[str]:
    """And what these include."""
    found = set(named)
    for key, solution in matrix.solutions.items() if program else ():
        framework = matrix.frameworks.get(solution.framework)
        naming = framework.naming if framework else None
        found |= {key} if program and _switched_on(solution, program, naming) else set()
    for key in list(found):
        found |= set(matrix.solutions[key].includes)
    return found


def _switched_on(solution: Solution, program: Program, naming: ApiNames | None) -> bool:
    wanted = solution.apply.env if solution.apply else {}
    if not (solution.switch or wanted) or (solution.apply and solution.apply.call and not solution.switch):
        return False
    return wanted.items() <= program.environ.items() and all(
        _is_step_applied(step, program, naming) for step in solution.switch
    )


def _is_step_applied(step: Calls, program: Program, naming: ApiNames | None) -> bool:
    """The last word counts: what was switched on may be switched off again."""
    done = False
    for call in program.calls_and_settings:
        name = naming.to_documented(call.name) if naming else call.name
        meant = [form for one, form in patterns_by_name(step) if one == name]
        if meant:
            done = any(_matches_call(form, call, naming) for form in meant)
    return done


def _matches_call(form: CallPattern, call: Call, naming: ApiNames | None) -> bool:
    return all(argument_matches(call, argument, naming) is True for argument in form.when)
