"""Further runs that confirm a culprit: with other hash seeds, with the op alone, and with the values recorded.

A culprit is a cause as a comparison of traces names it: a dict of an op, its line, class and advice.
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
from .program_runner import ProgramFailedError
from .result import at_line

REPLAYS = 30


class Confirmation(object):
    """The confirmation of the first culprit of a TraceDiff.

    result: the result.SearchResult to update; folder: for traces; runner, schedules: those of the search.
    """

    def __init__(self, difference, result, folder, runner, schedules):
        self._difference, self._result, self._folder = difference, result, folder
        self._runner, self._schedules = runner, schedules
        self._culprit, self._steps = difference.culprits[0], difference.steps_recorded

    def confirm(self, record, until_different, say):
        """Run the confirmations that suit the culprit's class.

        record(level, steps, options, environment): runs the program once more and returns the folder with its traces;
        until_different: takes the same arguments, repeats runs until two differ and returns their TraceDiff or None;
        say(line): reports a finding.
        """
        self._record, self._say = record, say
        may_follow_hashes = self._culprit["class"] in (Fault.HOST_VALUE.value, Fault.ORDER.value)
        if may_follow_hashes and not os.environ.get(hash_seeds.HASH_SEED_VARIABLE):
            self._try_hash_seed()
        if self._culprit["class"] == Fault.UNEXPLAINED.value:
            self._replay()
        self._measure(until_different)

    def _try_hash_seed(self):
        """Find out whether Python's hashes decide the culprit's value, such as by the order of a set."""
        culprit = self._culprit
        trial = hash_seeds.HashSeedTrial(
            lambda seed: self._record("ops", self._steps, environment={hash_seeds.HASH_SEED_VARIABLE: seed}),
            lambda folders: any(_place(other) == _place(culprit) for other in trace_diff.compare(folders).culprits))
        self._say(trial.run())
        if not trial.decides:
            culprit["lines"] = advice.without_hashes(culprit["lines"])
            return
        same_seed_difference = trace_diff.compare(trial.same_seed_runs)
        if same_seed_difference.result != "same":
            self._say("with one seed of hashes something else still differs" + "".join(
                ": {}{}".format(culprit["op_type"], at_line(culprit)) for culprit in same_seed_difference.culprits[:1]))
        table = advice.AdviceTable(dict(self._difference.headers[0], environment={}))
        # "python-set-order" is the key of a source of nondeterminism in the matrix.
        new_advice = table.advise(Fault(culprit["class"]), "python-set-order", culprit["device"])
        culprit.update(source=new_advice.source, solution=new_advice.solution, lines=new_advice.lines,
                       advice="; ".join([new_advice.summary] + new_advice.lines))

    def _replay(self):
        """Run the op alone several times on its recorded inputs."""
        culprit = self._culprit
        op = dict(culprit["key"], occurrence=culprit["occurrence"], rank=culprit["rank"])
        folder = self._record("ops", self._steps, ["--capture-inputs", json.dumps(op)])
        captures = sorted(name for name in os.listdir(folder) if name.startswith("capture-"))
        if not captures:
            self._say("it could not be replayed: its inputs were not kept")
            return
        try:
            self._report_replays(os.path.join(folder, captures[0]), folder)
        except ProgramFailedError as error:
            self._say("it could not be replayed: {}".format(error.cause))
            return
        advice.after_replay(culprit, **self._result.replay)

    def _report_replays(self, path, folder):
        if self._schedules:
            self._result.replay, lines = self._schedules.replay_summary(
                lambda environment: self._runner.replay(path, 2, environment), folder)
            text = "run alone on the same inputs in {times} schedules: {distinct} different results"
        else:
            replay, lines = self._runner.replay(path, REPLAYS), []
            self._result.replay = {"times": replay["times"], "distinct": max(replay["distinct"] or [1])}
            text = "replayed {times} times on the same inputs: {distinct} different results"
        for line in [text.format(**self._result.replay)] + lines:
            self._say(line)

    def _measure(self, until_different):
        """Measure by how much the values of the culprits, and of the path to the loss, differ."""
        if not self._difference.path_to_loss:
            return
        path = os.path.join(self._folder, "values.json")
        with io.open(path, "w", encoding="utf-8") as target:
            target.write(json.dumps(self._difference.path_to_loss))
        steps = self._steps
        try:  # an effect on a gradient appears in the next step's loss
            difference = until_different("ops", steps and (steps[0], steps[1] + 1), ["--record-values", path])
        except (ProgramFailedError, TraceFormatError) as error:
            self._say("by how much it differs is not known: {}".format(error.cause))
            return
        if difference is None:
            self._say("by how much it differs is not known: the runs that keep values agree")
        elif difference.values is not None:
            self._result.values = value_report.merge_growth(difference.values, self._result.values)


def _place(culprit):
    """Return the fields that identify the op in all runs: its name without the number of its occurrence."""
    fields = [culprit[name] for name in ("op_type", "file", "line", "function")]
    return fields + [without_occurrence(culprit["op_name"])]
