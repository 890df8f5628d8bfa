"""Why a difference is no cause: an ordered list of rules, each of which dismisses the causes for which it holds.

A rule is a module. Its docstring says what it finds, why that is no cause, and an example. holds(cause, facts) says
whether it dismisses a cause, and count_records(dismissed, facts) how many records that explains. facts: a
step_facts.StepFacts.
"""

from . import inert_string, masked, overtaken, report_only, unused_memory

DISMISSALS = (inert_string, unused_memory, masked, overtaken)  # report_only applies only if there are other causes

__all__ = ["DISMISSALS", "inert_string", "masked", "overtaken", "report_only", "unused_memory"]
