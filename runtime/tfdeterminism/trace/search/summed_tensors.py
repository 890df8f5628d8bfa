"""The tensors that Horovod sums together, read from its timeline, and the first sum that differs between runs.

Which tensors are summed together (tensor fusion) depends on time, and decides the order of the additions.
"""

import json
import os

from ..interpose.kinds import TensorFusion

_VARIABLE = "HOROVOD_TIMELINE"
_RUNS = 4  # with a timeline, at most
_SUMS = "_ALLREDUCE"  # suffix of the events of sums, such as GLOO_ALLREDUCE
_WAITS = "NEGOTIATE"  # prefix of the events in which ranks agree on a sum
_SHOWN = 2  # names of a sum that are listed; of more, the first and the last


class SummedTensors(object):
    """The sums of a program that uses Horovod.

    search: a cause_search.CauseSearch that has found causes; runs: its interposed_runs.InterposedRuns; copy: its
    program_copy.ProgramCopy.
    """

    def __init__(self, search, runs, copy):
        self._search, self._runs, self._copy = search, runs, copy

    def find(self, cause):
        """Add details to a ProvenCause that is tensor fusion: the lines that sum, the first sum that differs."""
        if cause.kind is not TensorFusion:
            return
        lines = self._search.users_lines(TensorFusion.name)
        if len(lines) > 1:
            cause.details.append("summed at " + ", ".join(lines))
        first_sums = None
        for turn in range(_RUNS):
            sums = self._run_with_timeline(turn)
            first_sums = first_sums or sums
            difference = first_difference(first_sums, sums)
            if difference:
                cause.details.append(difference)
                break

    def _run_with_timeline(self, turn):
        path = os.path.join(self._copy.temporary, "timeline.json")
        self._runs.run(turn, what="with Horovod's timeline", more={_VARIABLE: path})
        return _read_sums(path)


def summed_together(timeline):
    """Return lists of the names of the tensors of each sum, in their order.

    timeline: text of Horovod's timeline file, whose last event may be truncated.
    """
    names, sums, is_open = {}, [], False
    for event in _events(timeline):
        if event.get("name") == "process_name":  # Horovod gives each tensor a "process" of its own
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
    events = timeline.rstrip().rstrip(",")
    for text in (events, events + "]", events[: events.rfind("},") + 1] + "]"):
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
    """Return a line about the first sum that differs from the other run's, or None."""
    for number, (names, other_names) in enumerate(zip(sums, others)):
        if names != other_names:
            return "sum {} is of {} in one run, of {} in another".format(
                number + 1, _join_names(names), _join_names(other_names))
    return None


def _join_names(names):
    if len(names) <= _SHOWN:
        return ", ".join(names)
    return "{} tensors ({} to {})".format(len(names), names[0], names[-1])
