"""Finds: an op that reads a file by itself.
Why: nothing that feeds it says what the file holds.
Example: `tf.io.read_file(path)`, where another process rewrites the file.
"""

from ...faults import Fault
from ...schema import traits

FAULT = Fault.FILE


def matches(facts):  # facts: a cause_facts.CauseFacts
    return traits.READS_FILE in facts.definition["traits"]
