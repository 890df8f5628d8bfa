"""A cause in the words of its user: class, place in the program, row of the matrix, what to change."""

from ..faults import CauseKind, Fault
from ..schema import traits
from ..schema.format import PYTHON
from . import rules
from .advice import AdviceTable
from .cause import in_graph
from .cause_facts import CauseFacts, PairFacts

UNEXPLAINED_TEXT = "the first record that differs; no record stands out as the cause"
PREEXISTING_TEXT = "it differs already when recording begins"
_DIFFERS_TEXT = "its inputs agree, its output differs"


class Describer(object):
    """Of the causes of one pair. pair: an align.table.AlignedPair, whose first header says for whom advice is given."""

    def __init__(self, pair):
        self._pair = pair
        self._advice = AdviceTable(pair.runs[0].header)
        self._shared = PairFacts(pair)

    def describe(self, cause):
        """The dict that `diff --json` gives for a cause."""
        facts, one = CauseFacts(self._shared, cause), cause.definition
        forward = facts.forward()
        place = _place(facts, forward)
        fault = rules.classify(facts)
        found = self._advise(fault, facts, forward)
        drawing = facts.seeded_op() if fault is Fault.SEED and one["kind"] == "feed" else None
        named = drawing or one  # a seed from Python: the op that draws with it
        return {
            "op_type": named["op"], "op_name": named["node"], "output": one["output"], "device": one["device"],
            "step": cause.step, "occurrence": self._occurrence(cause), "file": place["file"], "line": place["line"],
            "stack": place["stack"], "forward_op": forward["op"] if forward else None,
            "forward_name": forward["node"] if forward else None,
            "function": one["function"], "layer": one["layer"], "replica": one["replica"], "thread": one["thread"],
            "variable": one["variable"], "used_by": facts.users(), "dtype": one["dtype"],
            "shape": one["shape"], "class": fault.value,
            "why": self._why(facts, fault), "source": found.source, "solution": found.solution, "lines": found.lines,
            "advice": "; ".join(line for line in [found.summary] + found.lines if line), "run": "AB"[cause.side],
        }

    def _advise(self, fault, facts, forward):
        one = facts.definition
        upstream = facts.pipeline() if fault is Fault.PIPELINE else []
        seeded = facts.seeded_op() if fault is Fault.SEED and facts.is_from_host() else None
        source = None
        if facts.cause.kind not in (CauseKind.STRUCTURE, CauseKind.ORDER, CauseKind.UNORDERED):
            source = self._advice.source(fault, one, forward, upstream, seeded)
        return self._advice.advise(fault, source, one["device"], one["op"])

    def _occurrence(self, cause):
        """How many records of its run with this key were made before."""
        made = self._pair.order[cause.side][self._pair.slots(cause.group)]
        return None if cause.slot is None else int((made < cause.order).sum())

    def _why(self, facts, fault):
        """One sentence: what was seen of it."""
        one, kind = facts.definition, facts.cause.kind
        if kind is CauseKind.STRUCTURE:
            return self._why_structure(facts.cause)
        if kind is CauseKind.ORDER:
            return "the same values come in another order"
        if kind is CauseKind.UNORDERED or facts.ran_unordered():
            return one["attrs"]["unordered"]
        if kind is CauseKind.UNEXPLAINED:
            return UNEXPLAINED_TEXT
        if one["kind"] == "read":
            return PREEXISTING_TEXT
        if one["attrs"].get("uninitialized"):
            return "it reads uninitialized memory"
        if one["kind"] == "write":
            return "what it writes differs, what goes in agrees"
        if fault is Fault.NOT_AT_LEVEL:
            return "the first that differs"
        if fault in (Fault.FILE, Fault.HOST_VALUE, Fault.PIPELINE) and traits.READS_FILE not in one["traits"]:
            return self._why_fed(facts.cause, fault)
        return _DIFFERS_TEXT

    def _why_fed(self, cause, fault):
        """Of a value that no op has made: what is known of where it comes from."""
        files = self._shared.files
        read = files.file_of_value(cause) or (files.read_before(cause) or [None])[-1]
        name = read and files.describe(read, cause.side)
        own = ", which the run itself had written before" if read and read.written_by_run else ""
        if fault is Fault.FILE:
            return "what was read from {} differs{}".format(name or "a file", own)
        said = "a value that comes from Python differs" if cause.definition["kind"] == "feed" and (
            cause.definition["op"] == PYTHON or not cause.definition["inputs"]) else _DIFFERS_TEXT
        return said + (", and so does what was read before from {}{}".format(name, own) if name else "")

    def _why_structure(self, cause):
        if min(int(self._pair.ids[side][cause.group]) for side in (0, 1)) < 0:
            return "only run {} has it".format("AB"[cause.side])
        return "other inputs feed it" if in_graph(cause.definition) else \
            "run {} does it here, the other goes on without".format("AB"[cause.side])


def _place(facts, forward):
    """The definition whose file, line and stack the user should look at."""
    one = facts.definition
    if forward and forward["file"]:
        return forward
    if one["kind"] == "input":
        parallel = [up for up in facts.pipeline() if traits.PARALLEL in up["traits"] and up["file"]]
        return (parallel or [one])[0]
    return one if one["file"] else (facts.callers() or [one])[0]
