"""What kind of fault a cause is: an ordered list of rules, of which the first that matches decides.

A rule is a module. Its docstring says what it finds, why that is the fault, and an example; FAULT is the class that it
names, and matches(facts) whether it holds of a cause. facts: a cause_facts.CauseFacts; facts.definition: what the trace
says of the op, weight, loss or layer that differs first.
"""

from . import (
    coarse_level,
    file_op,
    file_value,
    host_value,
    order,
    pipeline,
    pipeline_file,
    random_op,
    seed_from_python,
    state,
    stateful_op,
    structure,
    unexplained,
    uninitialized,
    unordered,
    variable_order,
    variable_race,
)

RULES = (
    structure,
    order,
    unordered,
    coarse_level,
    file_op,
    uninitialized,
    pipeline_file,
    pipeline,
    random_op,
    stateful_op,
    state,
    seed_from_python,
    file_value,
    host_value,
    variable_order,
    variable_race,
    unexplained,
)


def classify(facts):
    """The Fault of a cause."""
    return next(rule.FAULT for rule in RULES if rule.matches(facts))
