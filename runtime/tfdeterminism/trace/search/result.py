"""What a search has found, and its verdict."""

from .. import errors
from ..causes import trace_diff
from ..faults import Fault
from .fix_trial import REPEATS
from .proven_cause import NOT_PROVED, PROVEN
from .source_fix_trial import HOLDS

_PINNED_CLASSES = tuple(one.value for one in (Fault.HOST_VALUE, Fault.ORDER, Fault.FILE, Fault.SEED))


class SearchResult(object):
    """What was found. result: "same", "diverged", "structure"; difference: of the closest look, or None;
    replay: what `trace replay` said, or None; values: by how much it differs, see the comparison module, or None;
    fix: the fix.Fix that was tried, or None; findings: lines, in the order in which they were found."""

    def __init__(self):
        self.result = "same"
        self.difference = None
        self.replay = self.values = self.fix = None
        self.runs = 0
        self.findings = []
        self.culprits = []
        self.masked_by_tracing = False  # was it shown that the program differs without probes, and with them not?
        self.interventions = None  # a proven_cause.Interventions
        self.unlocated = None   # how runs ended that differ where no op that was recorded does, in words

    def set_interventions(self, found):
        """found: a proven_cause.Interventions."""
        self.interventions = found
        if found.verdict == NOT_PROVED:
            for culprit in self.culprits:
                _without_disproved_advice(culprit)
        if found.verdict in (PROVEN, NOT_PROVED) and self.result == "same":
            self.result = "diverged"
            self.unlocated = "The runs differ, and what was recorded does not show where"

    @property
    def causes(self):
        """The ProvenCauses."""
        return self.interventions.causes if self.interventions else []

    def set_first_run_differs(self, runs, left=()):
        """Of so many runs the first ended otherwise. left: the files of its that the others read."""
        self.result = "diverged"
        self.unlocated = "Only the first of {} runs ended otherwise; ".format(runs) + (
            "the {} after it read what it left: {}".format(runs - 1, ", ".join(left)) if left else
            "the {} after it agree".format(runs - 1))

    def set_ends_differ(self, words):
        """How runs ended is all that differs. words: how many."""
        self.result = "diverged"
        self.unlocated = "The runs differ, and what was recorded does not show where: " + words

    @property
    def code(self):
        repeats = self.fix and self.fix.result == REPEATS
        if repeats or self.causes and all(one.fix and one.fix.result == HOLDS for one in self.causes):
            return errors.EXIT_FIXED
        return trace_diff.CODES[self.result]

    def as_json(self):
        shown = self.difference.as_json() if self.difference else {"first_step": None, "notes": []}
        return dict(shown, result=self.result, culprits=self.culprits, runs=self.runs, replay=self.replay,
                    values=self.values, fix=self.fix and self.fix.as_json(), findings=self.findings,
                    verdict=self.verdict(), causes=[one.as_json() for one in self.causes],
                    interventions=self.interventions and self.interventions.as_json(),
                    masked_by_tracing=self.masked_by_tracing)

    def verdict(self):
        """One sentence."""
        if self.causes:
            return "; ".join(map(cause_sentence, self.causes)) + "."
        if self.result == "same":
            return "No difference in {} runs.".format(self.runs)
        if self.masked_by_tracing:
            return self._hidden_verdict()
        if self.unlocated:
            return self.unlocated + "."
        reach = self.difference and self.difference.end_mismatch
        if reach and not self.culprits:
            return "One run goes farther than the other: {}.".format(reach)
        if not self.culprits:
            return "The runs differ, but no recorded op does."
        first = self.culprits[0]
        said = "{} at step {}: {}".format(first["op_type"], first["step"], first["class"])
        if first["forward_op"]:
            said += " in the gradient of {}".format(first["forward_op"])
        if first["rank"] != "0":
            said += " in process {}".format(first["rank"])
        return said + at_line(first) + "."

    def _hidden_verdict(self):
        said = "Your program differs, the probes hide it"
        if not self.culprits:
            return said + "; the recorded graphs leave no order open."
        first = self.culprits[0]
        return "{}. What may run in any order: {}{}{}.".format(
            said, first["op_type"], at_line(first), ", and others" if self.culprits[1:] else "")


def at_line(culprit):
    return " ({}:{})".format(culprit["file"], culprit["line"]) if culprit["file"] else ""


def cause_sentence(cause):
    """A proven cause in one sentence: what it is, and the lines."""
    only = ": only the first run differs from the later ones" if cause.first_run_only else ""
    lines = ", ".join(map(str, cause.places))
    words = cause.kind.words[:1].upper() + cause.kind.words[1:]
    return "{}{}{}".format(words, " ({})".format(lines) if lines else "", only)


def _without_disproved_advice(culprit):
    """Seeds, sorted sets and equal files were pinned, and the runs still differ: the advice to use them is none."""
    if culprit["class"] in _PINNED_CLASSES:
        culprit.update(lines=[], solution=None, advice="unknown: to pin where such values come from did not help")
