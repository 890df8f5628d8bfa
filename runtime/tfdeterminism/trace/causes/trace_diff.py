"""Compare the traces of two or more runs.

A TraceDiff says which processes and values differ, and their causes. Its result is "same", "diverged" (a value differs)
or "structure" (the runs executed different ops).
"""

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
_SUSPECTS = 8  # maximum of culprits or lines in a list
_CLOCK_RESOLUTION = 0.05  # seconds; a value from Python may have come from another process shortly before


class NoRecordsError(trace_format.TraceFormatError):
    """A level at which there is nothing to compare."""


class TraceDiff(object):
    """The difference of two traces of one process.

    left, right: paths of the traces; rank: the process's name; starts: for each run when it started, in seconds since
    1970, or None.
    result: "same", "diverged" or "structure"; first_step: the first step that differs, or None; culprits: dicts, the
    first cause first; notes: lines of text. differing, missing, compared: numbers of records. end_mismatch: a sentence
    about how far each run went, or None if both went equally far. unordered: the ops whose order a graph does not
    define. steps: (step, records, differing records) of each step; first_difference_window: the records around the
    first difference. path_to_loss: the tensors from the first cause to the loss. values: by how much the stored values
    differ, see align.value_report. first_cause_at: seconds from the start of the run to the first cause, 0 for a single
    process. is_received: whether the first cause is an op that returns what another process sent.
    """

    def __init__(self, left, right, rank="0", starts=(None, None)):
        runs = [TraceTable(path) for path in (left, right)]
        _check_comparable(runs)
        for run in runs:
            if not run.count and run.header.get("level") != "none":
                raise NoRecordsError("{} has no records".format(run.path), _why_empty(run))
        self.rank = rank
        self.headers = [run.header for run in runs]
        self.steps_recorded = runs[0].header.get("steps")
        self.notes = _notes(runs)
        self.weights = [run.end.get("weights") if run.end else None for run in runs]
        pair = AlignedPair(*runs)
        analysis = PairAnalysis(pair)
        describer = Describer(pair)
        self.result = analysis.result
        self.first_step = analysis.first_step
        prefix = analysis.common_prefix
        self.compared = len(pair) if not prefix.is_uneven else pair.count_common(prefix.limit)
        self.end_mismatch = prefix.describe() if prefix.is_uneven else None
        if self.end_mismatch and rank != "0":
            self.end_mismatch = "in process {} {}".format(rank, self.end_mismatch)
        strings, unused = (analysis.dismissed[rule] for rule in (dismissals.inert_string, dismissals.unused_memory))
        self.differing, self.missing = analysis.differing - strings - unused, analysis.missing
        self.reordered = analysis.dismissed[dismissals.overtaken]
        if strings:
            self.notes.append("{:,} strings differ, and no number that comes from them: names of files, handles".format(
                strings))
        if unused:
            self.notes.append("{:,} values of uninitialized memory differ, and nothing computed from them".format(
                unused))
        self.is_received = bool(analysis.causes) and traits.RECEIVES in analysis.causes[0].definition["traits"]
        self._add_notes(analysis)
        self.culprits = _deduplicate_lines([dict(describer.describe(root), rank=rank, key=_key_of(root))
                                     for root in analysis.causes])
        for culprit in self.culprits:
            culprit["snippet"] = runs["AB".index(culprit["run"])].snippet(culprit["file"], culprit["line"])
        self.path_to_loss = _path_definitions(pair, analysis.causes)
        self.values = value_report.compare_values(pair)
        self.first_cause_at = _first_cause_time(analysis, starts)
        self.unordered = _unordered_lines(runs[0])
        self.steps = overview.steps(analysis)
        self.first_difference_window = overview.first_difference_window(analysis)

    def _add_notes(self, analysis):
        """Add notes on differences without a cause, and correct the result for them."""
        if analysis.initial_difference is not None:
            unrecorded = analysis.initial_difference.kind is CauseKind.UNRECORDED_WRITE
            text = "a state differs, and what writes it was not recorded: {}" if unrecorded else \
                "a state differs already when recording begins: {}; record from an earlier step"
            definition = analysis.initial_difference.definition
            self.notes.append(text.format(definition["variable"] or definition["node"]))
        elif self.end_mismatch and self.result == "structure" and not analysis.causes:
            if self._is_ended_by_parent(analysis):
                self.result, self.end_mismatch = "same", None
                self.notes.append("it was ended from outside in both runs")
                return
            self.notes.append("what decides how far a run goes was not recorded: the time, a file, an exception")
        if self.result == "same" and None not in self.weights and self.weights[0] != self.weights[1]:
            self.result = "diverged"
            self.notes.append("the final weights differ, and no record does")

    def _is_ended_by_parent(self, analysis):
        """Return whether the process is a child that its parent ended when its work was done.

        A step's records are written at its end or, by chance, before: of its last step a killed run may show none.
        """
        first_end, second_end = analysis.common_prefix.end_steps
        return all(header.get("parent") for header in self.headers) and not any(
            run.end for run in analysis.pair.runs) and abs(first_end - second_end) <= 1 and not analysis.missing

    def mark_same(self, note):
        """Change the result to "same", because the differences are due to chance. note: says why."""
        self.result, self.end_mismatch, self.culprits, self.first_step = "same", None, [], None
        self.is_received = False
        self.differing = self.missing = 0
        self.notes.append(note)

    def add_missing_processes(self, names):
        """Add a note on processes that only one of the runs has, and change the result."""
        self.result = "structure" if self.result == "same" else self.result
        self.notes.append("in one run only: process {}".format(", ".join(names)))

    def as_json(self):
        traces = [_summarize_header(header) for header in self.headers]
        return {"result": self.result, "first_step": self.first_step, "culprits": self.culprits, "rank": self.rank,
                "compared": self.compared, "differing": self.differing, "missing": self.missing,
                "reordered": self.reordered, "end_mismatch": self.end_mismatch, "unordered": self.unordered,
                "notes": self.notes, "steps": self.steps, "first_difference_window": self.first_difference_window,
                "weights": self.weights, "traces": traces,
                "path": self.path_to_loss, "values": self.values}


def compare(folders):
    """Return the TraceDiff of two or more traces (files or folders with one for each process).

    The first trace is compared with each other one, and all pairs of the others if that names no culprit. The
    TraceDiff with the earliest culprit is returned. Raises TraceFormatError.
    """
    runs = processes.processes_of(folders)
    differences = _diff_pairs(itertools.product(runs[:1], runs[1:]))
    if not any(difference.culprits for difference in differences):
        differences += _diff_pairs(itertools.combinations(runs[1:], 2))
    differences.sort(
        key=lambda difference: (not CODES[difference.result], not difference.culprits, _sort_key(difference)))
    earliest = differences[0]
    earliest.notes += _other_process_notes(differences)
    if earliest.result == "same":
        earliest.compared = sum(difference.compared for difference in differences)
    if len(differences) > 1:
        differ = sum(difference.result != "same" for difference in differences)
        earliest.notes.append("{} of {} comparisons differ".format(differ, len(differences)))
    return earliest


def _sort_key(difference):
    """Return the key that sorts the TraceDiffs of one run's processes: the first cause first."""
    culprit = (difference.culprits or [{}])[0]
    delay = _CLOCK_RESOLUTION if culprit.get("class") in (Fault.HOST_VALUE.value, Fault.FILE.value) else 0.0
    return (difference.is_received, difference.first_cause_at + delay, difference.first_step or 0)


def _other_process_notes(differences):
    """Return the notes on the processes other than that of the first TraceDiff."""
    lines = []
    for difference in sorted(differences, key=lambda difference: difference.rank):
        if difference.rank != differences[0].rank:
            differs = ["differs as well" + _from_where(difference)] if difference.result != "same" else []
            lines += ["process {}: {}".format(difference.rank, note) for note in differs + difference.notes
                      if note not in differences[0].notes]
    return list(dict.fromkeys(lines))


def _from_where(difference):
    if not difference.culprits:
        return ""
    return ", from step {} on: {}".format(difference.first_step, difference.culprits[0]["op_type"])


def unordered_candidates(folders, step):
    """Return the possible culprits of two runs whose records agree: ops that their graphs do not order."""
    left, right = processes.processes_of(folders)
    culprits = [culprit for name in left.files if name in right.files
                for culprit in _find_suspects(left.files[name], right.files[name], name, step)]
    return _deduplicate_lines(culprits)[:_SUSPECTS]


def _find_suspects(left_path, right_path, rank, step):
    runs = [TraceTable(left_path), TraceTable(right_path)]
    pair = AlignedPair(*runs)
    describer, culprits = Describer(pair), {}
    for definition in itertools.chain(_unordered_ops(runs[0]), _unsynchronized_writes(runs[0])):
        root = Cause(CauseKind.UNORDERED, 0, definition, step, 0, int(pair.group[0][definition["id"]]))
        culprits.setdefault(program_location(root), dict(describer.describe(root), rank=rank, key=_key_of(root)))
    for culprit in culprits.values():
        culprit["snippet"] = runs[0].snippet(culprit["file"], culprit["line"])
    return list(culprits.values())


def _first_cause_time(analysis, starts):
    """Return when the first cause was recorded, in seconds from the start of its run."""
    cause = (analysis.causes or [None])[0]
    side = cause.side if cause is not None else 0
    time = None if cause is None or starts[side] is None else analysis.pair.runs[side].recorded_at(cause.order)
    return 0.0 if time is None else time - starts[side]


def _unordered_ops(run):
    """Return the definitions that the recorder marked as unordered in their graphs."""
    return [definition for definition in map(run.definition, run.ids()) if definition["attrs"].get("unordered")]


def _unordered_lines(run):
    """Return a dict for each line of the program that has an unordered op, at most _SUSPECTS."""
    reasons = {(op["op"], op["file"], op["line"]): op["attrs"]["unordered"] for op in _unordered_ops(run)}
    lines = [{"op": op, "file": path, "line": line, "why": reason} for (op, path, line), reason in reasons.items()]
    return lines[:_SUSPECTS]


def _unsynchronized_writes(run):
    """Return the eager writes of variables that several threads write."""
    writes = {}
    for write in map(run.definition, run.ids()):
        if write["kind"] == "write" and write["variable"] and not in_graph(write):
            writes.setdefault((write["variable"], write["replica"]), []).append(write)
    races = [variable_writes for variable_writes in writes.values()
             if len({write["thread"] for write in variable_writes}) > 1]
    reason = "several threads write this variable, and nothing says which is first"
    return [dict(write, attrs={"unordered": reason}) for variable_writes in races for write in variable_writes]


def _diff_pairs(pairs):
    return [difference for left, right in pairs for difference in _diff_processes(left, right)]


def _diff_processes(left, right):
    """Return the TraceDiffs of two runs, one for each process that has records."""
    differences, empty = [], NoRecordsError("nothing to compare", "record it again")
    for name in sorted(set(left.files) & set(right.files)):
        try:
            differences.append(TraceDiff(left.files[name], right.files[name], name, (left.start, right.start)))
        except NoRecordsError as error:
            empty = error
    if not differences:
        raise empty
    for parent in {right.parents.get(name) or left.parents.get(name) for name in set(left.files) | set(right.files)}:
        _match_children(differences, left, right, parent)
    return differences


def _match_children(differences, left, right, parent):
    """Update the TraceDiffs of the children of one process.

    Which child did which work may be chance. A child that only one run has is a difference.
    """
    family = set(left.children(parent)) | set(right.children(parent))
    unmatched = family & set(processes.unmatched(left, right))
    differing = [difference for difference in differences if difference.rank in family and difference.result != "same"]
    if not differing and not unmatched:
        return
    if len(family) > 1 and processes.only_redistributed(left, right, parent):
        for difference in differing:
            difference.mark_same("who of the processes did what was shared out otherwise; together they did the same")
    elif unmatched:
        differences[0].add_missing_processes(sorted(unmatched))


def _deduplicate_lines(culprits):
    """Return the culprits, each line of the program once.

    Replicas and iterations of a line are one cause. So are the ops that take from a pipeline: Keras uses another op
    for the first element.
    """
    places, distinct = set(), []
    for culprit in culprits:
        op = None if culprit["class"] == Fault.PIPELINE.value else culprit["op_type"]
        place = (op, culprit["class"], culprit["file"], culprit["line"])
        if culprit["file"] is None or place not in places:
            distinct.append(culprit)
        places.add(place)
    return distinct


def _key_of(root):
    """Return the fields by which `run --capture-inputs` recognizes the record."""
    definition = root.definition
    return {name: definition[name] for name in ("function", "trace", "node", "output")}


def _path_definitions(pair, roots):
    """Return the input of `run --record-values`: outputs of the causes, and of the path from the first to the loss."""
    culprits = [root.definition for root in roots[:_SUSPECTS] if root.definition["output"] >= 0]
    path = path_to_loss.find_path_to_loss(pair, roots[0]) if roots else []
    path_ops = [op for op in path if op not in culprits]
    entries = [dict(_to_path_entry(op), role="culprit") for op in culprits]
    entries += [dict(_to_path_entry(op), role="loss" if op["attrs"].get("loss") else "path") for op in path_ops]
    return entries


def _to_path_entry(definition):
    key = _key_of(Cause(None, 0, definition, 0, 0, 0))
    return dict(key, op=definition["op"], file=definition["file"], line=definition["line"])


def _check_comparable(runs):
    """Raise TraceFormatError if the two runs cannot be compared."""
    left, right = (run.header for run in runs)
    program = [os.path.basename((header.get("argv") or [""])[0]) for header in (left, right)]
    for subject, values, remedy in (
            ("programs", program, "trace the same program twice"),
            ("frameworks", [header.get("framework") for header in (left, right)], "trace the same program twice"),
            ((backends.find_for_header(left).label or "framework") + " versions",
             [header.get("version") for header in (left, right)], "other versions round differently"),
            ("digests", [header.get("digest") for header in (left, right)], "record both with the same tfdeterminism"),
            ("devices", [header.get("devices") for header in (left, right)],
             "other devices round differently: use the same"),
            ("levels", [header.get("level") for header in (left, right)], "record both with the same --level"),
            ("steps", [header.get("steps") for header in (left, right)], "record both with the same --steps")):
        if values[0] != values[1]:
            raise trace_format.TraceFormatError("these are traces of different {}: {} and {}".format(
                subject, _shorten(values[0]), _shorten(values[1])), remedy)


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
    return _merge_notes(notes)


def _merge_notes(notes):
    """Return the notes; a note that both runs have appears once, without the name of the run."""
    first_notes = [note[3:] for note in notes if note.startswith("A: ")]
    common = [note for note in first_notes if "B: " + note in notes]
    others = [note for note in notes if note[3:] not in common]
    return list(dict.fromkeys(common)) + list(dict.fromkeys(others))


def _summarize_header(header):
    names = ("argv", "version", "python", "level", "steps", "devices", "xla")
    return dict({name: header.get(name) for name in names}, framework=backends.find_for_header(header).label)
