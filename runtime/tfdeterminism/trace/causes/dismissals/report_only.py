"""Finds: a read of a variable that the same run of a session writes in any order, where what comes of the read is but
fetched.
Why: it changes what the program prints, and nothing that it trains. Beside another cause it is none.
Example: `session.run([train_op, global_step])`.
"""

from ...faults import CauseKind
from ..cause import in_graph
from ..def_use import calls_python
from ..variable_writes import reads_any_of


def holds(cause, facts):
    mine, unordered = cause.definition, facts.unordered_variables
    if cause.side or not in_graph(mine) or not (
            cause.kind is CauseKind.UNORDERED and mine["variable"] in unordered
            or cause.kind is CauseKind.VALUE and mine["kind"] == "op"
            and reads_any_of(mine, facts.pair.runs[0], unordered)):
        return False

    def passes(one):
        return one["dtype"] != "resource" and (
            not one["recorded"] or one["kind"] == "call" or facts.differs_now(one))

    return not any(one["kind"] == "write" or calls_python(one) for one in facts.flow().descendants(mine, passes))


def count(dismissed, facts):
    return len(dismissed)
