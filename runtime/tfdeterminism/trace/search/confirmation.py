"""What further runs say of a culprit: with one seed of hashes and another, of the op alone, and by how much it differs.
"""

import io
import json
import os

from ..align import value_report
from ..causes import advice, trace_diff
from ..causes.cause import without_occurrence
from ..faults import Fault
from ..schema.format import TraceFormatError
from . import hash_seeds
from .launcher import ProgramFailedError
from .result import at_line

REPLAYS = 30


class Confirmation(object):
    """Of the first culprit of a TraceDiff. found: the result.SearchResult, told what is seen; folder: where traces go;
    launcher, schedules: as the search has them."""

    def __init__(self, difference, found, folder, launcher, schedules):
        self._difference, self._found, self._folder = difference, found, folder
        self._launcher, self._schedules = launcher, schedules
        self._culprit, self._steps = difference.culprits[0], difference.steps_recorded

    def confirm(self, record, until_different, say):
        """record(level, steps, options, environment): runs it once more, and gives the folder; until_different: the
        same until two runs differ, and gives their TraceDiff or None; say(line)."""
        self._record, self._say = record, say
        hashed = self._culprit["class"] in (Fault.HOST_VALUE.value, Fault.ORDER.value)
        if hashed and not os.environ.get(hash_seeds.VARIABLE):
            self._try_hash_seed()
        if self._culprit["class"] == Fault.UNEXPLAINED.value:
            self._replay()
        self._measure(until_different)

    def _try_hash_seed(self):
        """Is it what Python's hashes decide, such as the order of a set?"""
        culprit = self._culprit
        trial = hash_seeds.HashSeedTrial(
            lambda seed: self._record("ops", self._steps, environment={hash_seeds.VARIABLE: seed}),
            lambda folders: any(_place(one) == _place(culprit) for one in trace_diff.compare(folders).culprits))
        self._say(trial.run())
        if not trial.decides:
            culprit["lines"] = advice.without_hashes(culprit["lines"])
            return
        rest = trace_diff.compare(trial.same_seed_runs)
        if rest.result != "same":
            self._say("with one seed of hashes something else still differs" + "".join(
                ": {}{}".format(one["op_type"], at_line(one)) for one in rest.culprits[:1]))
        table = advice.AdviceTable(dict(self._difference.headers[0], environment={}))
        found = table.advise(Fault(culprit["class"]), "python-set-order", culprit["device"])
        culprit.update(source=found.source, solution=found.solution, lines=found.lines,
                       advice="; ".join([found.summary] + found.lines))

    def _replay(self):
        """Run the one op again and again on the inputs that it had."""
        culprit = self._culprit
        op = dict(culprit["key"], occurrence=culprit["occurrence"], rank=culprit["rank"])
        folder = self._record("ops", self._steps, ["--capture-inputs", json.dumps(op)])
        kept = sorted(name for name in os.listdir(folder) if name.startswith("capture-"))
        if not kept:
            self._say("it could not be replayed: its inputs were not kept")
            return
        try:
            self._tell_of_replays(os.path.join(folder, kept[0]), folder)
        except ProgramFailedError as error:
            self._say("it could not be replayed: {}".format(error.cause))
            return
        advice.after_replay(culprit, **self._found.replay)

    def _tell_of_replays(self, path, folder):
        if self._schedules:
            self._found.replay, lines = self._schedules.replay_summary(
                lambda environment: self._launcher.replay(path, 2, environment), folder)
            words = "run alone on the same inputs in {times} schedules: {distinct} different results"
        else:
            told, lines = self._launcher.replay(path, REPLAYS), []
            self._found.replay = {"times": told["times"], "distinct": max(told["distinct"] or [1])}
            words = "replayed {times} times on the same inputs: {distinct} different results"
        for line in [words.format(**self._found.replay)] + lines:
            self._say(line)

    def _measure(self, until_different):
        """By how much it differs: runs that keep values of the culprits, and of the way to the loss."""
        if not self._difference.path_to_loss:
            return
        wanted = os.path.join(self._folder, "values.json")
        with io.open(wanted, "w", encoding="utf-8") as target:
            target.write(json.dumps(self._difference.path_to_loss))
        steps = self._steps
        try:  # what a gradient spoils, the next step's loss tells
            seen = until_different("ops", steps and (steps[0], steps[1] + 1), ["--record-values", wanted])
        except (ProgramFailedError, TraceFormatError) as error:
            self._say("by how much it differs is not known: {}".format(error.cause))
            return
        if seen is None:
            self._say("by how much it differs is not known: the runs that keep values agree")
        elif seen.values is not None:
            self._found.values = value_report.merge_growth(seen.values, self._found.values)


def _place(culprit):
    """Which op it is, whatever it is called: a name may count how often its line ran before."""
    fields = [culprit[name] for name in ("op_type", "file", "line", "function")]
    return fields + [without_occurrence(culprit["op_name"])]
