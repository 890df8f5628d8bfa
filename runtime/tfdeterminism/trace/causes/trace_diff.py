"""Compare traces: which processes, notes and causes two or more runs differ by."""

import itertools
import json
import os

from .. import backends, errors
from ..align import processes, value_report
from ..align.table import AlignedPair, TraceTable
from ..faults import CauseKind, Fault
from ..schema import format as trace_format
from ..schema import traits
from . import dismissals, overview, path_to_loss
from .cause import Cause, in_graph, program_location
from .describe import Describer
from .find_causes import PairAnalysis

CODES = {"same": errors.EXIT_SAME, "diverged": errors.EXIT_DIFFERS, "structure": errors.EXIT_DIFFERS}
_SUSPECTS = 8
_CLOCK_RESOLUTION = 0.05  # seconds; what came from Python may have come from another process just before


class NoRecordsError(trace_format.TraceFormatError):
    """There is nothing to compare at this level."""


class TraceDiff(object):
    """The difference of two traces of one process.

    result: "same", "diverged" or "structure"; first_step: the first step that differs, or None; culprits: dicts, the
    first cause first; notes: lines. differing, missing, compared: numbers of records. end_mismatch: in words, how far
    each run went, if one went farther; or None. unordered: the ops whose order a graph does not define. steps: (step,
    records, differing records) of each step; first_difference_window: the records around the first difference.
    path_to_loss: the tensors from the first cause to the loss. values: by how much the stored values differ, see
    align.value_report. first_cause_at: seconds from the start of the run to the first cause, 0 for a single process.
    """

    def __init__(self, left, right, rank="0", starts=(None, None)):
        runs = [TraceTable(path) for path in (left, right)]
        _check(runs)
        for run in runs:
            if not run.count and run.header.get("level") != "none":
                raise NoRecordsError("{} has no records".format(run.path), _why_empty(run))
        self.rank = rank
        self.headers = [run.header for run in runs]
        self.steps_recorded = runs[0].header.get("steps")
        self.notes = _notes(runs)
        self.weights = [run.end.get("weights") if run.end else None for run in runs]
        pair = AlignedPair(*runs)
        verdict = PairAnalysis(pair)
        describer = Describer(pair)
        self.result = verdict.result
        self.first_step = verdict.first_step
        prefix = verdict.common_prefix
        self.compared = len(pair) if not prefix.is_uneven else pair.count_common(prefix.limit)
        self.end_mismatch = prefix.describe() if prefix.is_uneven else None
        if self.end_mismatch and rank != "0":
            self.end_mismatch = "in process {} {}".format(rank, self.end_mismatch)
        strings, unused = (verdict.dismissed[one] for one in (dismissals.inert_string, dismissals.unused_memory))
        self.differing, self.missing = verdict.differing - strings - unused, verdict.missing
        self.reordered = verdict.dismissed[dismissals.overtaken]
        if strings:
            self.notes.append("{:,} strings differ, and no number that comes from them: names of files, handles".format(
                strings))
        if unused:
            self.notes.append("{:,} values of uninitialized memory differ, and nothing computed from them".format(
                unused))
        self.is_received = bool(verdict.causes) and traits.RECEIVES in verdict.causes[0].definition["traits"]
        self._add_notes(verdict)
        self.culprits = _deduplicate_lines([dict(describer.describe(root), rank=rank, key=_key_of(root))
                                     for root in verdict.causes])
        for culprit in self.culprits:
            culprit["snippet"] = runs["AB".index(culprit["run"])].snippet(culprit["file"], culprit["line"])
        self.path_to_loss = _path(pair, verdict.causes)
        self.values = value_report.compare_values(pair)
        self.first_cause_at = _moment(verdict, starts)
        self.unordered = _unordered_lines(runs[0])
        self.steps = overview.steps(verdict)
        self.first_difference_window = overview.first_difference_window(verdict)

    def _add_notes(self, verdict):
        """What is no culprit and makes the runs differ nevertheless."""
        if verdict.preexisting is not None:
            unrecorded = verdict.preexisting.kind is CauseKind.UNRECORDED_WRITE
            words = "a state differs, and what writes it was not recorded: {}" if unrecorded else \
                "a state differs already when recording begins: {}; record from an earlier step"
            read = verdict.preexisting.definition
            self.notes.append(words.format(read["variable"] or read["node"]))
        elif self.end_mismatch and self.result == "structure" and not verdict.causes:
            if self._ended_alike(verdict):
                self.result, self.end_mismatch = "same", None
                self.notes.append("it was ended from outside in both runs")
                return
            self.notes.append("what decides how far a run goes was not recorded: the time, a file, an exception")
        if self.result == "same" and None not in self.weights and self.weights[0] != self.weights[1]:
            self.result = "diverged"
            self.notes.append("the final weights differ, and no record does")

    def _ended_alike(self, verdict):
        """Is it a child that its parent ends when its work is done?

        What a step has recorded is written at its end, or before by chance: of the last one a killed run may show none.
        """
        first, second = verdict.common_prefix.end_steps
        return all(header.get("parent") for header in self.headers) and not any(
            run.end for run in verdict.pair.runs) and abs(first - second) <= 1 and not verdict.missing

    def mark_same(self, note):
        """What differs is chance."""
        self.result, self.end_mismatch, self.culprits, self.first_step = "same", None, [], None
        self.is_received = False
        self.differing = self.missing = 0
        self.notes.append(note)

    def add_missing_processes(self, names):
        """Processes that only one of the runs has."""
        self.result = "structure" if self.result == "same" else self.result
        self.notes.append("in one run only: process {}".format(", ".join(names)))

    def as_json(self):
        traces = [_about(header) for header in self.headers]
        return {"result": self.result, "first_step": self.first_step, "culprits": self.culprits, "rank": self.rank,
                "compared": self.compared, "differing": self.differing, "missing": self.missing,
                "reordered": self.reordered, "end_mismatch": self.end_mismatch, "unordered": self.unordered,
                "notes": self.notes, "steps": self.steps, "first_difference_window": self.first_difference_window,
                "weights": self.weights, "traces": traces,
                "path": self.path_to_loss, "values": self.values}


def compare(folders):
    """The TraceDiff of two or more traces (files or folders with one for each process).

    The first is compared with each other, and where that names no culprit those too. Of what names one the earliest
    speaks for all. Raises TraceFormatError.
    """
    runs = processes.processes_of(folders)
    found = _pairs(itertools.product(runs[:1], runs[1:]))
    if not any(one.culprits for one in found):
        found += _pairs(itertools.combinations(runs[1:], 2))
    found.sort(key=lambda one: (not CODES[one.result], not one.culprits, _sort_key(one)))
    first = found[0]
    first.notes += _other_process_notes(found)
    if first.result == "same":
        first.compared = sum(one.compared for one in found)
    if len(found) > 1:
        differ = sum(one.result != "same" for one in found)
        first.notes.append("{} of {} comparisons differ".format(differ, len(found)))
    return first


def _sort_key(difference):
    """Sorts the TraceDiffs of one run's processes: the first cause first."""
    first = (difference.culprits or [{}])[0]
    waits = _CLOCK_RESOLUTION if first.get("class") in (Fault.HOST_VALUE.value, Fault.FILE.value) else 0.0
    return (difference.is_received, difference.first_cause_at + waits, difference.first_step or 0)


def _other_process_notes(found):
    """What there is to say of the other processes."""
    lines = []
    for one in sorted(found, key=lambda one: one.rank):
        if one.rank != found[0].rank:
            differs = ["differs as well" + _from_where(one)] if one.result != "same" else []
            lines += ["process {}: {}".format(one.rank, note) for note in differs + one.notes
                      if note not in found[0].notes]
    return list(dict.fromkeys(lines))


def _from_where(difference):
    if not difference.culprits:
        return ""
    return ", from step {} on: {}".format(difference.first_step, difference.culprits[0]["op_type"])


def unordered_candidates(folders, step):
    """The culprits that could be, of two runs whose records agree: what their graphs leave the order open of."""
    left, right = processes.processes_of(folders)
    found = [one for name in left.files if name in right.files
             for one in _suspects_in(left.files[name], right.files[name], name, step)]
    return _deduplicate_lines(found)[:_SUSPECTS]


def _suspects_in(left, right, rank, step):
    runs = [TraceTable(left), TraceTable(right)]
    pair = AlignedPair(*runs)
    describer, found = Describer(pair), {}
    for one in itertools.chain(_unordered_ops(runs[0]), _unsynchronized_writes(runs[0])):
        root = Cause(CauseKind.UNORDERED, 0, one, step, 0, int(pair.group[0][one["id"]]))
        found.setdefault(program_location(root), dict(describer.describe(root), rank=rank, key=_key_of(root)))
    for culprit in found.values():
        culprit["snippet"] = runs[0].snippet(culprit["file"], culprit["line"])
    return list(found.values())


def _moment(verdict, starts):
    """When the first cause was, seen from the start of its run."""
    first = (verdict.causes or [None])[0]
    side = first.side if first is not None else 0
    at = None if first is None or starts[side] is None else verdict.pair.runs[side].recorded_at(first.order)
    return 0.0 if at is None else at - starts[side]


def _unordered_ops(run):
    """What the recorder read off the graphs."""
    return [one for one in map(run.definition, run.ids()) if one["attrs"].get("unordered")]


def _unordered_lines(run):
    """A line of the program once."""
    found = {(one["op"], one["file"], one["line"]): one["attrs"]["unordered"] for one in _unordered_ops(run)}
    return [{"op": op, "file": path, "line": line, "why": why} for (op, path, line), why in found.items()][:_SUSPECTS]


def _unsynchronized_writes(run):
    """Writes of one variable by several threads, op by op."""
    writes = {}
    for one in map(run.definition, run.ids()):
        if one["kind"] == "write" and one["variable"] and not in_graph(one):
            writes.setdefault((one["variable"], one["replica"]), []).append(one)
    apart = [found for found in writes.values() if len({one["thread"] for one in found}) > 1]
    why = "several threads write this variable, and nothing says which is first"
    return [dict(one, attrs={"unordered": why}) for found in apart for one in found]


def _pairs(pairs):
    return [one for left, right in pairs for one in _diff_processes(left, right)]


def _diff_processes(left, right):
    """The TraceDiffs of two runs, one for each process that has records."""
    found, empty = [], NoRecordsError("nothing to compare", "record it again")
    for name in sorted(set(left.files) & set(right.files)):
        try:
            found.append(TraceDiff(left.files[name], right.files[name], name, (left.start, right.start)))
        except NoRecordsError as error:
            empty = error
    if not found:
        raise empty
    for parent in {right.parents.get(name) or left.parents.get(name) for name in set(left.files) | set(right.files)}:
        _match_children(found, left, right, parent)
    return found


def _match_children(found, left, right, parent):
    """Of the children of one process: who did what may be chance, and one that only one run has is a difference."""
    family = set(left.children(parent)) | set(right.children(parent))
    lacking = family & set(processes.unmatched(left, right))
    mine = [one for one in found if one.rank in family and one.result != "same"]
    if not mine and not lacking:
        return
    if len(family) > 1 and processes.only_redistributed(left, right, parent):
        for one in mine:
            one.mark_same("who of the processes did what was shared out otherwise; together they did the same")
    elif lacking:
        found[0].add_missing_processes(sorted(lacking))


def _deduplicate_lines(culprits):
    """One line of the program is one cause, however many replicas and turns it has, and ops that take from a pipeline:
    what Keras looks at first another op takes."""
    seen, found = set(), []
    for one in culprits:
        op = None if one["class"] == Fault.PIPELINE.value else one["op_type"]
        place = (op, one["class"], one["file"], one["line"])
        if one["file"] is None or place not in seen:
            found.append(one)
        seen.add(place)
    return found


def _key_of(root):
    """What `run --capture-inputs` needs to know the record again."""
    one = root.definition
    return {"function": one["function"], "trace": one["trace"], "node": one["node"], "output": one["output"]}


def _path(pair, roots):
    """What `run --record-values` takes: outputs of the causes, and those on the path from the first to the loss."""
    culprits = [root.definition for root in roots[:_SUSPECTS] if root.definition["output"] >= 0]
    way = [one for one in path_to_loss.find_path_to_loss(pair, roots[0]) if one not in culprits] if roots else []
    found = [dict(_named(one), role="culprit") for one in culprits]
    found += [dict(_named(one), role="loss" if one["attrs"].get("loss") else "path") for one in way]
    return found


def _named(one):
    return dict(_key_of(Cause(None, 0, one, 0, 0, 0)), op=one["op"], file=one["file"], line=one["line"])


def _check(runs):
    """Raise TraceFormatError if the two cannot be compared."""
    left, right = (run.header for run in runs)
    program = [os.path.basename((header.get("argv") or [""])[0]) for header in (left, right)]
    for what, values, remedy in (
            ("programs", program, "trace the same program twice"),
            ("frameworks", [h.get("framework") for h in (left, right)], "trace the same program twice"),
            ((backends.find_for_header(left).label or "framework") + " versions",
             [h.get("version") for h in (left, right)], "other versions round differently"),
            ("digests", [h.get("probe") for h in (left, right)], "record both with the same tfdeterminism"),
            ("devices", [h.get("devices") for h in (left, right)], "other devices round differently: use the same"),
            ("levels", [h.get("level") for h in (left, right)], "record both with the same --level"),
            ("steps", [h.get("steps") for h in (left, right)], "record both with the same --steps")):
        if values[0] != values[1]:
            raise trace_format.TraceFormatError("these are traces of different {}: {} and {}".format(
                what, _shorten(values[0]), _shorten(values[1])), remedy)


def _shorten(value):
    return value if isinstance(value, str) else json.dumps(value)


def _why_empty(run):
    if not run.end:
        return "the program was killed before the first one"
    return run.end.get("error") or "the program ran no op that was probed; is it a program of {}?".format(
        backends.labels())


def _notes(runs):
    notes = []
    for name, run in zip("AB", runs):
        if run.damage:
            notes.append("{} ({}) is {}; it was read up to there".format(name, run.path, run.damage))
        elif not run.end:
            notes.append("{} ({}) has no end: the program was killed; it was read up to there".format(name, run.path))
        elif run.end.get("error"):
            notes.append("{}: {}".format(name, run.end["error"]))
        notes += ["{}: {}".format(name, note.get("text", "")) for note in run.notes]
    notes += ["{} is not the same in both runs (line {}): they ran two programs".format(os.path.basename(path), line)
              for path, line in sorted(runs[0].changed_lines(runs[1]).items())]
    left, right = (run.header for run in runs)
    if (left.get("argv") or [])[1:] != (right.get("argv") or [])[1:]:
        notes.append("the arguments of the programs differ")
    if left.get("environment") != right.get("environment"):
        notes.append("determinism-related environment variables differ")
    if runs[0].header.get("python") != runs[1].header.get("python"):
        notes.append("the Python versions differ")
    return _merged(notes)


def _merged(notes):
    """Notes that both runs have once: a line less to read."""
    plain = [note[3:] for note in notes if note.startswith("A: ")]
    both = [note for note in plain if "B: " + note in notes]
    rest = [note for note in notes if note[3:] not in both]
    return list(dict.fromkeys(both)) + list(dict.fromkeys(rest))


def _about(header):
    names = ("argv", "version", "python", "level", "steps", "devices", "xla")
    return dict({name: header.get(name) for name in names}, framework=backends.find_for_header(header).label)
