"""Find the solutions that are in effect: those that the user names, and those that the program's own code enables."""

from __future__ import annotations

from collections.abc import Iterable

from tfdet.matrix.call_patterns import ApiNames, CallPattern, Calls, patterns_by_name
from tfdet.matrix.load import Matrix
from tfdet.matrix.models import Solution
from tfdet.verdicts.programs import Call, Program
from tfdet.verdicts.reachable_sources import argument_matches


def find_enabled_solutions(matrix: Matrix, program: Program | None, named: Iterable[str]) -> set[str]:
    """Return the keys of the named solutions, of those that a program enables, and of all that these include."""
    enabled = set(named)
    for key, solution in matrix.solutions.items() if program else ():
        framework = matrix.frameworks.get(solution.framework)
        naming = framework.naming if framework else None
        enabled |= {key} if program and _is_enabled_by(solution, program, naming) else set()
    for key in list(enabled):
        enabled |= set(matrix.solutions[key].includes)
    return enabled


def _is_enabled_by(solution: Solution, program: Program, naming: ApiNames | None) -> bool:
    """Return whether a program sets the variables of a solution (apply.env) and makes a call of each step (switch).

    A solution without either, or with a call (apply.call) whose form in programs is unknown, is not recognized.
    """
    variables = solution.apply.env if solution.apply else {}
    if not (solution.switch or variables) or (solution.apply and solution.apply.call and not solution.switch):
        return False
    return variables.items() <= program.environ.items() and all(
        _is_step_applied(step, program, naming) for step in solution.switch
    )


def _is_step_applied(step: Calls, program: Program, naming: ApiNames | None) -> bool:
    """Return whether the last of the program's calls that concern a step applies it: later calls may undo it."""
    is_applied = False
    for call in program.calls_and_settings:
        name = naming.to_documented(call.name) if naming else call.name
        patterns = [pattern for pattern_name, pattern in patterns_by_name(step) if pattern_name == name]
        if patterns:
            is_applied = any(_matches_call(pattern, call, naming) for pattern in patterns)
    return is_applied


def _matches_call(pattern: CallPattern, call: Call, naming: ApiNames | None) -> bool:
    return all(argument_matches(call, argument, naming) is True for argument in pattern.when)
