"""Why a difference is no cause: an ordered list of rules, each of which dismisses what it holds of.

A rule is a module. Its docstring says what it finds, why that is no cause, and an example. holds(cause, facts) says
whether it dismisses a cause, and count(dismissed, facts) how many records that explains. facts: a step_facts.StepFacts.
"""

from . import inert_string, masked, overtaken, report_only, unused_memory

DISMISSALS = (inert_string, unused_memory, masked, overtaken)  # report_only is asked beside other causes alone

__all__ = ["DISMISSALS", "inert_string", "masked", "overtaken", "report_only", "unused_memory"]
