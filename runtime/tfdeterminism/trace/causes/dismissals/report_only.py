"""Finds: a read of a variable that the same run of a session writes in any order, and the program only
fetches what is computed from the read.
Why: it changes what the program prints, and nothing that it trains. It is a cause only if there is no other.
Example: `session.run([train_op, global_step])`.
"""

from ...faults import CauseKind
from ..cause import in_graph
from ..def_use import calls_python
from ..variable_writes import reads_any_of


def holds(cause, facts):  # cause: a cause.Cause, whose `side` is 0 or 1, its run; facts: a step_facts.StepFacts
    definition, unordered = cause.definition, facts.unordered_variables
    if cause.side or not in_graph(definition) or not (
            cause.kind is CauseKind.UNORDERED and definition["variable"] in unordered
            or cause.kind is CauseKind.VALUE and definition["kind"] == "op"
            and reads_any_of(definition, facts.pair.runs[0], unordered)):
        return False

    def passes(use):
        return use["dtype"] != "resource" and (
            not use["recorded"] or use["kind"] == "call" or facts.differs_now(use))

    return not any(use["kind"] == "write" or calls_python(use) for use in facts.flow().descendants(definition, passes))


def count_records(dismissed, facts):
    return len(dismissed)
