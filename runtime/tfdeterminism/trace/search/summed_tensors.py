"""Which tensors Horovod sums together, as its timeline tells it, and the first sum that is another in another run."""

import json
import os

from ..interpose.kinds import TensorFusion

_VARIABLE = "HOROVOD_TIMELINE"
_RUNS = 4  # with a timeline, at most
_SUMS = "_ALLREDUCE"  # ends the name of what a library does, such as GLOO_ALLREDUCE
_WAITS = "NEGOTIATE"  # begins the name of what goes before
_SHOWN = 2  # names of one sum; of more, the first and the last


class SummedTensors(object):
    """search: a cause_search.CauseSearch that has found causes; runs: its interposed_runs.InterposedRuns; copy: its
    program_copy.ProgramCopy."""

    def __init__(self, search, runs, copy):
        self._search, self._runs, self._copy = search, runs, copy

    def find(self, cause):
        """Give a ProvenCause that is tensor fusion its details: the lines that sum, and the first sum that differs."""
        if cause.kind is not TensorFusion:
            return
        lines = self._search.users_lines(TensorFusion.name)
        if len(lines) > 1:
            cause.details.append("summed at " + ", ".join(lines))
        first = None
        for turn in range(_RUNS):
            sums = self._run_with_timeline(turn)
            first = first or sums
            found = first_difference(first, sums)
            if found:
                cause.details.append(found)
                break

    def _run_with_timeline(self, turn):
        path = os.path.join(self._copy.temporary, "timeline.json")
        self._runs.run(turn, what="with Horovod's timeline", more={_VARIABLE: path})
        return _read_sums(path)


def summed_together(timeline):
    """Lists of the names of the tensors of each sum, in their order. timeline: text; the last event may be cut off."""
    names, sums, is_open = {}, [], False
    for event in _events(timeline):
        if event.get("name") == "process_name":
            names[event["pid"]] = event["args"].get("name", "")
            continue
        name = event.get("name", "")
        begins = event.get("ph") == "B" and name.endswith(_SUMS) and not name.startswith(_WAITS)
        if begins and is_open:
            sums[-1].append(names[event["pid"]])
        elif begins:
            sums.append([names[event["pid"]]])
        is_open = begins
    return sums


def _events(timeline):
    whole = timeline.rstrip().rstrip(",")
    for text in (whole, whole + "]", whole[: whole.rfind("},") + 1] + "]"):
        try:
            return json.loads(text)
        except ValueError:
            continue
    return []


def _read_sums(path):
    if not os.path.isfile(path):
        return []
    with open(path) as source:
        return summed_together(source.read())


def first_difference(sums, others):
    """A line about the first sum that is another in the other run; None where all are the same."""
    for number, (one, other) in enumerate(zip(sums, others)):
        if one != other:
            return "sum {} is of {} in one run, of {} in another".format(number + 1, _shown(one), _shown(other))
    return None


def _shown(names):
    if len(names) <= _SHOWN:
        return ", ".join(names)
    return "{} tensors ({} to {})".format(len(names), names[0], names[-1])
