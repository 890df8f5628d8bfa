"""The description of a cause for the user: class, place in the program, source of the matrix, what to change.

The matrix is the data in `matrix/`; a source in it is a known source of nondeterminism.
"""

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
    """The descriptions of the causes of one pair of runs.

    pair: an align.table.AlignedPair: a group has the records of one definition, a slot those that correspond to each
    other; ids: of each run by group, -1 for none. The advice is for the environment in the header of its first run.
    """

    def __init__(self, pair):
        self._pair = pair
        self._advice = AdviceTable(pair.runs[0].header)
        self._shared = PairFacts(pair)

    def describe(self, cause):
        """Return the dict that `diff --json` prints for a cause."""
        facts, definition = CauseFacts(self._shared, cause), cause.definition
        forward = facts.forward()
        shown = _place(facts, forward)
        fault = rules.classify(facts)
        advice = self._advise(fault, facts, forward)
        random_op = facts.seeded_op() if fault is Fault.SEED and definition["kind"] == "feed" else None
        op = random_op or definition  # a seed from Python: the op that draws with it
        return {
            "op_type": op["op"], "op_name": op["node"], "output": definition["output"], "device": definition["device"],
            "step": cause.step, "occurrence": self._occurrence(cause), "file": shown["file"], "line": shown["line"],
            "stack": shown["stack"], "forward_op": forward["op"] if forward else None,
            "forward_name": forward["node"] if forward else None,
            "function": definition["function"], "layer": definition["layer"], "replica": definition["replica"],
            "thread": definition["thread"], "variable": definition["variable"], "used_by": facts.users(),
            "dtype": definition["dtype"], "shape": definition["shape"], "class": fault.value,
            "why": self._why(facts, fault), "source": advice.source, "solution": advice.solution, "lines": advice.lines,
            "advice": "; ".join(line for line in [advice.summary] + advice.lines if line), "run": "AB"[cause.side],
        }

    def _advise(self, fault, facts, forward):
        definition = facts.definition
        upstream = facts.pipeline() if fault is Fault.PIPELINE else []
        seeded = facts.seeded_op() if fault is Fault.SEED and facts.is_from_host() else None
        source = None
        if facts.cause.kind not in (CauseKind.STRUCTURE, CauseKind.ORDER, CauseKind.UNORDERED):
            source = self._advice.source(fault, definition, forward, upstream, seeded)
        return self._advice.advise(fault, source, definition["device"], definition["op"])

    def _occurrence(self, cause):
        """Return the number of earlier records with the same key in the cause's run, or None without a record."""
        orders = self._pair.order[cause.side][self._pair.slots(cause.group)]
        return None if cause.slot is None else int((orders < cause.order).sum())

    def _why(self, facts, fault):
        """Return one sentence that says what was observed of the cause."""
        definition, kind = facts.definition, facts.cause.kind
        if kind is CauseKind.STRUCTURE:
            return self._why_structure(facts.cause)
        if kind is CauseKind.ORDER:
            return "the same values come in another order"
        if kind is CauseKind.UNORDERED or facts.ran_unordered():
            return definition["attrs"]["unordered"]
        if kind is CauseKind.UNEXPLAINED:
            return UNEXPLAINED_TEXT
        if definition["kind"] == "read":
            return PREEXISTING_TEXT
        if definition["attrs"].get("uninitialized"):
            return "it reads uninitialized memory"
        if definition["kind"] == "write":
            return "what it writes differs, what goes in agrees"
        if fault is Fault.NOT_AT_LEVEL:
            return "the first that differs"
        if fault in (Fault.FILE, Fault.HOST_VALUE, Fault.PIPELINE) and traits.READS_FILE not in definition["traits"]:
            return self._why_fed(facts.cause, fault)
        return _DIFFERS_TEXT

    def _why_fed(self, cause, fault):
        """Return the sentence about the origin of a value that no op computed."""
        files = self._shared.files
        read = files.file_of_value(cause) or (files.read_before(cause) or [None])[-1]
        name = read and files.describe(read, cause.side)
        suffix = ", which the run itself had written before" if read and read.written_by_run else ""
        if fault is Fault.FILE:
            return "what was read from {} differs{}".format(name or "a file", suffix)
        text = "a value that comes from Python differs" if cause.definition["kind"] == "feed" and (
            cause.definition["op"] == PYTHON or not cause.definition["inputs"]) else _DIFFERS_TEXT
        return text + (", and so does what was read before from {}{}".format(name, suffix) if name else "")

    def _why_structure(self, cause):
        if min(int(self._pair.ids[side][cause.group]) for side in (0, 1)) < 0:
            return "run {} does it here, the other does not".format("AB"[cause.side])  # which may do it elsewhere
        return "other inputs feed it" if in_graph(cause.definition) else \
            "run {} does it here, the other goes on without".format("AB"[cause.side])


def _place(facts, forward):
    """Return the definition whose file, line and stack the user should look at."""
    definition = facts.definition
    if forward and forward["file"]:
        return forward
    if definition["kind"] == "input":
        parallel = [stage for stage in facts.pipeline() if traits.PARALLEL in stage["traits"] and stage["file"]]
        return (parallel or [definition])[0]
    return definition if definition["file"] else (facts.callers() or [definition])[0]
