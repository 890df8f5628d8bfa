"""The result of a search for what makes the runs of a program differ, and its verdict in words.

Probes are the calls that a trace inserts into the framework. A replay runs one recorded op again. An intervention runs
the program with a pin, which gives it the same value in every run; a cause is proven if the runs then agree.
"""

from .. import errors
from ..causes import trace_diff
from ..faults import Fault
from .fix_trial import REPEATS
from .proven_cause import NOT_PROVED, PARTLY, PROVEN
from .source_fix_trial import HOLDS

_PINNED_CLASSES = tuple(fault.value for fault in (Fault.HOST_VALUE, Fault.ORDER, Fault.FILE, Fault.SEED))


class SearchResult(object):
    """The result of a search.

    result: "same", "diverged" (a value differs) or "structure" (the runs executed different ops); difference: the
    TraceDiff of two runs that shows the difference in most detail, or None; culprits: dicts about causes; replay: the
    result of `trace replay`, or None; values: by how much values differ (see align.value_report), or None; fix: the
    fix_trial.Fix that was tried, or None; findings: lines, in the order in which they were found.
    """

    def __init__(self):
        self.result = "same"
        self.difference = None
        self.replay = self.values = self.fix = None
        self.runs = 0
        self.findings = []
        self.culprits = []
        self.masked_by_tracing = False  # whether the program was shown to differ only without probes
        self.interventions = None  # a proven_cause.Interventions
        self.traced_alike = False  # whether runs recorded ops, and all of them agree
        self.unlocated = None   # a sentence about runs that differ although no recorded op does

    def set_interventions(self, interventions):
        """Store a proven_cause.Interventions and update the result for it."""
        self.interventions = interventions
        if interventions.verdict == NOT_PROVED:
            for culprit in self.culprits:
                _drop_disproved_advice(culprit)
        if interventions.verdict in (PROVEN, PARTLY, NOT_PROVED) and self.result == "same":
            self.result = "diverged"
            self.unlocated = "The runs differ, and what was recorded does not show where"

    @property
    def causes(self):
        """The ProvenCauses."""
        return self.interventions.causes if self.interventions else []

    def set_first_run_differs(self, runs, files=()):
        """Store that only the first run ended otherwise. files: those that it wrote and the other runs read."""
        self.result = "diverged"
        self.unlocated = "Only the first of {} runs ended otherwise; ".format(runs) + (
            "the {} after it read what it left: {}".format(runs - 1, ", ".join(files)) if files else
            "the {} after it agree".format(runs - 1))

    def set_ends_differ(self, description):
        """Store that only the final weights of runs differ. description: how many differ, as text."""
        self.result = "diverged"
        self.unlocated = "The runs differ, and what was recorded does not show where: " + description

    @property
    def code(self):
        repeats = self.fix and self.fix.result == REPEATS
        if repeats or self.causes and all(cause.fix and cause.fix.result == HOLDS for cause in self.causes):
            return errors.EXIT_FIXED
        return trace_diff.CODES[self.result]

    def as_json(self):
        report = self.difference.as_json() if self.difference else {"first_step": None, "notes": []}
        return dict(report, result=self.result, culprits=self.culprits, runs=self.runs, replay=self.replay,
                    values=self.values, fix=self.fix and self.fix.as_json(), findings=self.findings,
                    verdict=self.verdict(), causes=[cause.as_json() for cause in self.causes],
                    interventions=self.interventions and self.interventions.as_json(),
                    masked_by_tracing=self.masked_by_tracing)

    def verdict(self):
        """Return the verdict as one sentence, and another one if something that no pin reaches may be the cause."""
        interventions = self.interventions
        if not interventions or interventions.verdict not in (NOT_PROVED, PARTLY) or not interventions.noted:
            return self._verdict()
        return "{} Not examined, because no pin reaches it, is what enters at: {}.".format(
            self._verdict(), ", ".join(interventions.noted))

    def _verdict(self):
        if self.causes:
            return "; ".join(map(cause_sentence, self.causes)) + "."
        if self.result == "same":
            return "No difference in {} runs.".format(self.runs)
        if self.masked_by_tracing:
            return self._hidden_verdict()
        if self.unlocated:
            return self.unlocated + "."
        end_mismatch = self.difference and self.difference.end_mismatch
        if end_mismatch and not self.culprits:
            return "One run goes farther than the other: {}.".format(end_mismatch)
        if not self.culprits:
            return "The runs differ, but no recorded op does."
        culprit = self.culprits[0]
        text = "{} at step {}: {}".format(culprit["op_type"], culprit["step"], culprit["class"])
        if culprit["forward_op"]:
            text += " in the gradient of {}".format(culprit["forward_op"])
        if culprit["rank"] != "0":
            text += " in process {}".format(culprit["rank"])
        return text + at_line(culprit) + "."

    def _hidden_verdict(self):
        text = "Your program differs, the probes hide it"
        if not self.culprits:
            return text + "; the recorded graphs leave no order open."
        culprit = self.culprits[0]
        return "{}. What may run in any order: {}{}{}.".format(
            text, culprit["op_type"], at_line(culprit), ", and others" if self.culprits[1:] else "")


def at_line(culprit):
    return " ({}:{})".format(culprit["file"], culprit["line"]) if culprit["file"] else ""


def cause_sentence(cause):
    """Return one sentence about a proven cause: what it is, and its lines."""
    restriction = ": only the first run differs from the later ones" if cause.first_run_only else ""
    lines = ", ".join(map(str, cause.places))
    description = cause.kind.label[:1].upper() + cause.kind.label[1:]
    return "{}{}{}".format(description, " ({})".format(lines) if lines else "", restriction)


def _drop_disproved_advice(culprit):
    """Remove advice to pin what was pinned without effect (seeds, sorted sets, equal files)."""
    if culprit["class"] in _PINNED_CLASSES:
        culprit.update(lines=[], solution=None, advice="unknown: to pin where such values come from did not help")
