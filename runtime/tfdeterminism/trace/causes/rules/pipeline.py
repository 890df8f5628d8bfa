"""Finds: any other element of an input pipeline.
Why: the pipeline shuffles, draws, or gives its elements as its threads finish.
Example: `dataset.map(augment, num_parallel_calls=8)`, where `augment` draws random numbers.
"""

from ...faults import Fault

FAULT = Fault.PIPELINE


def matches(facts):  # facts: a cause_facts.CauseFacts
    return facts.definition["kind"] == "input"
