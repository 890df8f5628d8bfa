"""The search for a cause by interventions: if it is pinned, and only it, the runs agree.

The steps are: runs without pins until two differ; each likely kind of nondeterminism alone; all kinds at once and the
smallest set that suffices; then the lines of the program.

A pin gives the program the same value in every run, for one kind of nondeterminism, everywhere or at some places (lines
of the user's). An end is what a run is compared by: its final weights, written files or printed text.
"""

import collections
import math
import os
import re
import time

from ..interpose import kinds
from . import chance
from .interposed_runs import ERRORS, FILES, PRINTED, WEIGHTS
from .minimize import ddmin
from .place_search import PlaceSearch
from .proven_cause import (
    ALL_DIFFER,
    ALL_ENDLESS,
    ALL_FAIL,
    ENDLESS,
    FAILED,
    LIMIT,
    NOT_CONFIRMED,
    NOT_PROVED,
    PARTLY,
    PROVEN,
    SAME,
    Interventions,
    ProvenCause,
)
from .summed_tensors import SummedTensors

_LIKELY = 5  # kinds that are tried alone
_ALWAYS = ("hash-seed", "addresses", "memory", "switches", "one-thread")  # leave no trace in the ledger
_FINE = 3  # a pin with a smaller `coarseness` removes one source of nondeterminism alone
_UNPINNED = tuple(kind.name for kind in kinds.ALL if not kind.has_pin)
_NOTED = _UNPINNED + tuple(kind.name for kind in kinds.ALL if kind.is_partial)
_CONSTANT = tuple(kind.name for kind in kinds.ALL if kind.constant)  # the same in all runs on one machine
_LONG_RUN = 600  # seconds
_RUNS_OF_A_PROOF = 12
_RUNS_OF_A_RATE = 6
_FIRST_RUNS = 3  # without pins, at least
_MOST_RUNS = 24  # that must agree because pinned runs seldom differed
_LIMIT = 300  # of runs with pins in the search; those that state a part of the causes come on top
_RUNS_OF_A_PART = 12
_LONGER = 3  # factor on the number of runs while values at a line of the program differ
_RARELY = ("hash-seed", "random", "pid")  # kinds whose values may differ while the ends seldom do
_VARIED = ("listing", "mtime", "completion", "time-zone", "machine")  # get other values if runs without pins agree
_OUTSIDE = ("files", "schedule", "switches", "one-thread")  # their pins give no values inside the program
_SHOW_VALUES = {"hash-seed": 1, "listing": 2, "mtime": 2, "addresses": 2, "system": 1}  # {kind: its rank if all agree}
_PROCESSORS, _BACKGROUND = "processors", kinds.BackgroundThread.name
_ENTERS_BY = {"time-zone": "clock"}  # {varied kind: kind whose ledger rows show its lines}
_SECONDS = re.compile(r", (\d+\.\d+)\)$")  # at the end of a value of the kind "mtime"
_SEEDS = (1, 2)  # of variations; two, because one run may differ by chance


class CauseSearch(object):
    """The search for the causes of one program.

    runs: an interposed_runs.InterposedRuns; copy: the program_copy.ProgramCopy in which they run; limit: maximum of
    runs without pins; schedules: schedules.Schedules; agree_runs: minimum of runs with pins that must agree.
    """

    def __init__(self, runs, copy, limit, schedules, progress, agree_runs=0):
        self._runs, self._copy, self._limit, self._schedules = runs, copy, limit, schedules
        self._progress, self._agree_runs, self._agreements = progress, agree_runs, {}
        self._places, self._sums = PlaceSearch(self, copy), SummedTensors(self, runs, copy)
        self._pins_address_lines = True  # whether addresses are pinned at lines alone
        self._line_pins = {}  # of a line that was proved before its kind
        self._ends = {}  # {key of pins: (the pins, ends of all runs with them)}
        self._last_run = None  # number of the last run that the search may make; None for no limit
        self._began = time.time()
        self._endless = set()  # kinds with which pinned the program does not end
        self._held_calls = set()  # (kind, line, function) of calls that got a pinned value in any run
        self._without_one = {}  # {kind: ends of runs in which all causes but this one were pinned}
        self._confirmed = []  # ends of the runs that confirmed all causes
        self.hold_counts = {}  # {kind: how often its pin gave a value in the last run}
        self.baseline = []  # InterposedRuns without pins
        self.interventions = Interventions()

    def search(self):
        """Return the Interventions. Raises program_runner.ProgramFailedError if the program fails without pins."""
        self._run_unpinned()
        interventions = self.interventions
        if interventions.distinct == 1:
            interventions.verdict = SAME
            self._try_variations()
            interventions.noted = self._list_noted(name for name in _NOTED if name not in interventions.varied)
            timers = [row for row in self.ledger_rows("clock") if row.what in kinds.TIMERS]
            interventions.noted = sorted(interventions.noted + _texts_of_calls(timers))
        else:
            interventions.required_runs = self._required_runs()
            self._find_within_limit()
            interventions.noted = self._list_noted(name for name in _NOTED if name not in _CONSTANT)
        interventions.total = self._runs.count
        return interventions

    # Runs

    def _run_unpinned(self):
        """Run the program without pins, in one folder that is not restored between the runs."""
        self._copy.restore()
        limit = max(self._limit, _FIRST_RUNS)
        for turn in range(limit * _LONGER):
            if turn >= limit:
                if not self._may_differ():
                    break
                self._progress.planned += 1
            run = self._runs.run(turn, require=turn == 0)
            if run.failed:
                raise run.failed
            self._copy.learn_outside(run.ledger)
            run.files = self._copy.carried()
            if turn == 0:
                self._print_duration(run.seconds)
            self.baseline.append(run)
            self._compare()
            if turn + 1 >= _FIRST_RUNS and self.interventions.distinct > 1:
                break

    def _may_differ(self):
        """Return whether the user's lines get values that differ, so that a difference may be rare."""
        return any(self.differing_places(name) for name in _RARELY)

    def _print_duration(self, seconds):
        """Print how long a proof will take, if a run is long."""
        if seconds > _LONG_RUN:
            self._progress.print_line(
                "  a run takes {:.0f} min, a proof about {} runs: --steps N ends each after N training steps".format(
                    seconds / 60, _RUNS_OF_A_PROOF
                )
            )

    def _compare(self):
        """Choose what is compared: weights if there are any, else files that differ, else the printed text.

        A program writes its progress to standard error: that is compared if there is nothing else.
        """
        runs = self.baseline
        tiers = (WEIGHTS, FILES, PRINTED, ERRORS)
        known_tiers = [tier for tier in tiers if any(run.ends[tier] is not None for run in runs)]
        differing_tiers = [tier for tier in known_tiers if len({run.ends[tier] for run in runs}) > 1]
        results = [tier for tier in differing_tiers + known_tiers if tier != ERRORS] or [ERRORS]
        self.interventions.compared = WEIGHTS if WEIGHTS in known_tiers else results[0]
        self.interventions.also_differ = [tier for tier in differing_tiers if tier != self.interventions.compared]
        ends = [run.ends[self.interventions.compared] for run in runs]
        self.interventions.runs = [ends.index(end) for end in ends]

    def _required_runs(self):
        """Return how many runs must agree so that runs which differ as often as those without pins seldom do."""
        if self.only_first_differs():
            return max(_FIRST_RUNS, self._agree_runs)
        return max(chance.runs_that_seldom_agree(self.interventions.runs), self._agree_runs)

    def run_series(self, pins, number, whole=False, doing="without pins"):
        """Run the program from its initial files and return the runs, which end once one fails or two differ.

        whole: whether runs that differ do not end them; doing: what the runs are made for if nothing is pinned.

        Pinned "files" are restored before each run, all of them or those that the pin names.
        """
        runs = []
        for turn in range(number):
            if self._last_run is not None and self._runs.count >= self._last_run:
                raise _LimitReachedError()
            if turn == 0 or pins.get("files", ()) is None:
                self._copy.restore()
            elif "files" in pins:
                self._copy.restore_only(pins["files"])
            what = "pinned: " + self._describe_pins(pins) if pins else doing
            runs.append(self._runs.run(turn, pins, what=what))
            self._held_calls.update((row.kind, row.place, row.what) for row in runs[-1].ledger if row.held)
            if "random" in pins:
                self._copy.remove_temporary(runs[-1].ledger)
            if not runs[-1].failed:
                self._ends.setdefault(_key(pins), (pins, []))[1].append(self._end_of(runs[-1]))
            if runs[-1].failed or not (whole or self.have_equal_ends(runs)):
                break
        return runs

    def counted_work(self, pins, doing):
        """Run the program once with a trace that counts its steps, or its values; return its Work, or None."""
        work = self.baseline[0].work
        if not work.has_framework or work.steps is not None:
            return None
        self._progress.planned += 1
        self._copy.restore()
        run = self._runs.run(0, pins, what=doing, level="weights" if work.tensors else "ops")
        return None if run.failed else run.work

    def have_equal_ends(self, runs):
        """Return whether these runs ended with the same result."""
        return len(set(map(self._end_of, runs))) == 1

    def _end_of(self, run):
        return run.ends[self.interventions.compared]

    def agree(self, pins):
        """Return whether the runs agree with these pins. pins: {kind: None, or its places}.

        Runs that differed prove it for any number of runs; runs that agreed, for their number.
        """
        key = _key(pins)
        if self._agreements.get(key, (False, 0))[1] < self.interventions.required_runs:
            self._agreements[key] = self._try_pins(pins)
        return self._agreements[key][0]

    def agreed_runs(self, pins):
        """Return how many runs with these pins, for which agree() is true, agreed."""
        return self._agreements[_key(pins)][1]

    def _try_pins(self, pins):
        """Return (whether runs with these pins agree, the number of runs for which that is proved)."""
        needed = self.interventions.required_runs
        self._progress.planned += needed
        runs = self.run_series(pins, needed)
        failed = runs[-1].failed
        self._progress.planned -= needed - len(runs)
        if failed and failed.is_late and len(pins) == 1:
            self._endless.update(pins)
        do_agree = not failed and self.have_equal_ends(runs)
        if not failed and not do_agree:
            self._learn_rate(runs)
        self.hold_counts.update(_count_held_calls(pins, runs[-1].ledger))
        has_no_hold = do_agree and not any(self.hold_counts[name] for name in pins)
        outcome = (
            (ENDLESS if failed.is_late else FAILED)
            if failed
            else "took no hold"
            if has_no_hold
            else ("equal in {} runs" if do_agree else "differs within {} runs").format(len(runs))
        )
        self._add_tried("{} pinned: {}".format(self._describe_pins(pins), outcome))
        may_change = do_agree or failed and not failed.is_late
        return do_agree and not has_no_hold, needed if may_change else math.inf

    def _learn_rate(self, runs):
        """Require more runs to agree if these, with some causes pinned, differed so late that the rest is rare."""
        ends = [self._end_of(run) for run in runs if not run.failed]
        needed = min(chance.runs_that_seldom_agree(ends), _MOST_RUNS)
        is_first_run = self.carried_files() and _only_first_differs(ends)
        if len(ends) > 2 and needed > self.interventions.required_runs and not is_first_run:
            self._require_runs(needed)

    def _require_runs(self, needed):
        self.interventions.required_runs = needed
        self._progress.print_line("  a difference is rare: from now on, {} runs must agree".format(needed))

    def _add_tried(self, line):
        self.interventions.tried.append(line)
        self._progress.print_line("  " + line)

    def _describe_pins(self, pins):
        return " and ".join(
            sorted(
                name if places is None else "{} at {}".format(name, ", ".join(map(self._copy.name_of, places)))
                for name, places in pins.items()
            )
        )

    # Kinds

    def _find_within_limit(self):
        """Find the causes with a limited number of runs; if that does not suffice, one that is a part of them."""
        interventions, self._last_run = self.interventions, self._runs.count + _LIMIT
        try:
            self._find_kinds()
        except _LimitReachedError:
            interventions.causes, interventions.verdict, interventions.reason = [], NOT_PROVED, LIMIT
            self._add_tried("{} runs with pins are the limit of the search".format(_LIMIT))
        self._last_run = None
        if interventions.verdict == NOT_PROVED:
            self._find_part()

    def _find_part(self):
        """Find a kind, and a line of it, with which pinned more runs agree, although not all do."""
        pins, ends = self._likeliest_part(lambda places: places is None)
        if not pins or chance.probability(self._ends_without_pins(), ends) > chance.RISK:
            return
        (name,) = pins
        cause = ProvenCause(kinds.BY_NAME[name], pins, len(ends), False)
        cause.agreed, cause.pinned_calls = chance.most_frequent(ends), self.hold_counts[name]
        at_line, ends = self._likeliest_part(lambda places: places is not None and len(places) == 1, name)
        if at_line and chance.probability(self._ends_without_pins(), ends) <= chance.RISK:
            self._places.set_places(cause, at_line[name], len(ends), chance.most_frequent(ends))
        self.interventions.causes, self.interventions.verdict = [cause], PARTLY

    def _likeliest_part(self, is_wanted, only=None):
        """Return (the pin of one kind with which most runs agreed, ends of new runs with it), or ({}, []).

        is_wanted(places): whether a pin that holds there is wanted; only: name of the kind, None for any.
        """
        tried = [
            (chance.share(ends), key)
            for key, (pins, ends) in self._ends.items()
            if len(pins) == 1 and only in (None, list(pins)[0]) and all(map(is_wanted, pins.values()))
        ]
        if not tried:
            return {}, []
        pins, known_ends = self._ends[max(tried)[1]]
        self._progress.planned += _FIRST_RUNS
        runs = self.run_series(pins, _FIRST_RUNS, whole=True)
        if chance.share(known_ends) > chance.share(self._ends_without_pins()):
            self._progress.planned += _RUNS_OF_A_PART - len(runs)
            runs += self.run_series(pins, _RUNS_OF_A_PART - len(runs), whole=True)
        self.hold_counts.update(_count_held_calls(pins, runs[-1].ledger))
        ends = [self._end_of(run) for run in runs if not run.failed]
        if len(ends) < len(runs):
            return {}, []
        self._add_tried("{} pinned: {} of {} runs agree".format(
            self._describe_pins(pins), chance.most_frequent(ends), len(ends)))
        return pins, ends

    def _ends_without_pins(self):
        return list(map(self._end_of, self.baseline))

    def _find_kinds(self, retries=2):
        interventions = self.interventions
        names = self._find_smallest_set(self._candidates())
        if names is None:
            last = (interventions.tried or [""])[-1]
            reasons = {FAILED: ALL_FAIL, ENDLESS: ALL_ENDLESS}
            interventions.verdict = NOT_PROVED
            interventions.reason = next((reasons[end] for end in reasons if last.endswith(end)), ALL_DIFFER)
            return
        if "addresses" in names and not self._pins_address_lines:
            names = self._drop_helpers(names)
        pins = self._line_pins or self._expand_pins(names, self._pins_address_lines)
        if self.agree(pins) and self._is_confirmed(names, pins):
            interventions.verdict = PROVEN
            for cause in interventions.causes:
                cause.pinned_calls = self.hold_counts[cause.kind.name]
                cause.details += self._ranks_of(cause) + self._later_draws(cause)
                self._sums.find(cause)
            return
        interventions.causes, interventions.verdict, interventions.reason = [], NOT_PROVED, NOT_CONFIRMED
        if retries:
            self._require_runs(max(interventions.required_runs, min(2 * interventions.required_runs, _MOST_RUNS)))
            self._find_kinds(retries - 1)

    def _is_confirmed(self, names, pins):
        """Set the causes and their places, and return whether new runs agree where earlier ones may have by chance.

        Runs that differ seldom do, and so do some of many sets of pins or lines that were tried.
        """
        runs, first_run_only, self._without_one = self.agreed_runs(pins), self.only_first_differs(), {}
        causes = self.interventions.causes = [
            ProvenCause(kinds.BY_NAME[name], pins, runs, name == "files" and first_run_only) for name in names
        ]
        if len(causes) > 1:
            self._learn_rates_without_one(pins)
            if not self._agree_again(pins):
                return False
        for cause in causes:
            self._places.find(cause)
        has_lines = all(cause.places and cause.kind.has_places for cause in causes)
        if not has_lines:
            for cause in causes:
                self._learn_rate_at_lines(cause)
            return self._agree_again(pins) and self._are_needed(pins)
        if sum(len(cause.places) for cause in causes) > 1:
            at_lines = dict(pins, **{cause.kind.name: cause.pinned_places for cause in causes})
            return self._agree_again(at_lines) and self._are_needed(at_lines)
        at_line = dict(pins, **{cause.kind.name: cause.pinned_places for cause in causes})
        if list(pins) == ["files"] and first_run_only:
            return set(self._ends[_key(pins)][1]) == {self._end_of(self.baseline[0])}
        always_differ = self.interventions.required_runs <= _FIRST_RUNS and not first_run_only
        return always_differ or self._agree_again(at_line) and self._are_needed(at_line)

    def _learn_rates_without_one(self, pins):
        """Run the program with all causes pinned but one, for each, and require the runs that this rate asks for."""
        for cause in self.interventions.causes:
            others = {name: places for name, places in pins.items() if name != cause.kind.name}
            self._progress.planned += _RUNS_OF_A_RATE
            runs = self.run_series(others, _RUNS_OF_A_RATE, whole=True)
            self._without_one[cause.kind.name] = [self._end_of(run) for run in runs if not run.failed]
            self._learn_rate(runs)

    def _are_needed(self, pins):
        """Return whether runs without one of these causes or lines differ more often than by chance."""
        for cause in self.interventions.causes:
            places = pins[cause.kind.name] or []
            if len(places) > 1:
                for place in places:
                    others = [other for other in places if other != place]
                    without_one = dict(pins, **{cause.kind.name: others})
                    if not self._is_needed(pins, without_one, self._ends.get(_key(without_one), ((), []))[1]):
                        return False
            if len(pins) == 1 and len(places) < 2:
                if not self._is_needed(pins, {}, self._ends_without_pins()):
                    return False
            if cause.kind.name in self._without_one:
                other_causes = {name: places for name, places in pins.items() if name != cause.kind.name}
                if not self._is_needed(pins, other_causes, self._without_one[cause.kind.name]):
                    return False
        return True

    def _is_needed(self, pins, others, ends):
        """Return whether runs with the other pins differ more often than the runs with all.

        ends: of earlier runs with the other pins. Both are run until chance is improbable, or the limit is reached.
        """
        while not ends or chance.probability(ends, self._confirmed) > chance.RISK:
            number = max(_FIRST_RUNS, len(ends))
            self._progress.planned += number
            runs = self.run_series(others, number, whole=True)
            if runs[-1].failed:
                return False
            ends = ends + [self._end_of(run) for run in runs]
            if len(self._confirmed) < len(ends) and not self._agree_again(pins, len(ends) - len(self._confirmed)):
                return False
        return True

    def _learn_rate_at_lines(self, cause):
        """Run the program with a cause pinned at all of its lines, if that did not suffice, and learn from the rate."""
        lines = [] if cause.places or not cause.kind.has_places else self._places.candidates(cause.kind.name)
        if lines:
            self._progress.planned += _RUNS_OF_A_RATE
            self._learn_rate(self.run_series(dict(cause.pins, **{cause.kind.name: lines}), _RUNS_OF_A_RATE, whole=True))

    def _ranks_of(self, cause):
        """Return [a line about the ranks that a cause enters], or [] if it enters all."""
        lines = {str(place) for place in cause.places}
        rows = [row for run in self.baseline for row in run.ledger]
        all_ranks = {row.rank for row in rows} - {""}
        ranks = {row.rank for row in rows if row.kind == cause.kind.name and _line_of(row) in lines} - {""}
        if not ranks or ranks == all_ranks:
            return []
        return ["in rank {} only, of {} ranks".format(", ".join(sorted(ranks)), len(all_ranks))]

    def _later_draws(self, cause):
        """Return [a line about further lines that draw from the global generators of a cause], or []."""
        generators = {row.place for row in self.ledger_rows("random") if row.is_global} & set(cause.pinned_places)
        lines = {row.what for row in self.ledger_rows(kinds.LATER_DRAW) if row.place in generators}
        lines -= {str(place) for place in cause.places}
        return ["the same generator gives numbers at {}, too".format(", ".join(sorted(lines)))] if lines else []

    def _agree_again(self, pins, more=0):
        """Return whether new runs agree with these pins of all causes, everywhere or at their lines alone.

        more: number of runs that must agree with those that confirmed these pins before; 0 to begin anew.
        """
        number = more or self.interventions.required_runs
        self._progress.planned += number
        runs = self.run_series(pins, number)
        if runs[-1].failed or not self.have_equal_ends(runs):
            self._add_tried("{} pinned: equal at first, and not again".format(self._describe_pins(pins)))
            return False
        ends = list(map(self._end_of, runs))
        if more and ends[0] != self._confirmed[0]:
            return False
        self._confirmed = (self._confirmed if more else []) + ends
        for cause in self.interventions.causes:
            cause.runs += len(runs)
            cause.agreed = cause.runs
        return True

    def _candidates(self):
        excluded = {kind.name for kind in kinds.ALL if kind.name not in _ALWAYS and not self.ledger_rows(kind.name)}
        if self.carried_files():
            excluded.discard("files")
        else:
            excluded.add("files")
        excluded.update(_UNPINNED + (_BACKGROUND,))
        (excluded.discard if self._schedules else excluded.add)("schedule")
        return [kind.name for kind in kinds.ALL if kind.name not in excluded]

    def _find_smallest_set(self, candidates):
        """Return the names of the smallest set of kinds with which pinned the runs agree, or None."""
        self._pins_address_lines = True
        ranked = sorted(candidates, key=self._rank)
        self._line_pins = self._find_likeliest_line(ranked[:1])
        if self._line_pins:
            return ranked[:1]
        if self._is_out_of_reach(candidates):
            return None
        for name in ranked[:_LIKELY]:
            is_tried = self._rank(name)[0] < 2 and name not in self._endless
            if is_tried and self.agree(self._expand_pins([name])):
                return [name]
        candidates = [name for name in candidates if name not in self._endless]
        likely = [name for name in candidates if self._rank(name)[0] < 2]
        fine = [name for name in candidates if kinds.BY_NAME[name].coarseness < _FINE]
        without_addresses = [name for name in fine if name != "addresses"]
        tiers = [(likely, True), (without_addresses, True), (fine, True), (fine, False), (candidates, False)]
        smaller = []  # type: list
        for names, lines in tiers:
            if names and self.agree(self._expand_pins(names, lines)):
                self._pins_address_lines = lines
                new_names = [name for name in names if name not in smaller]  # one of these is needed
                single = next(([name] for name in new_names if self.agree(self._expand_pins([name], lines))), None)
                return single or self._minimize(names)
            found = self._find_background_thread() if names == likely else None
            if found:
                return found
            smaller = names
        return self._find_beside_background_threads(candidates)

    def _is_out_of_reach(self, candidates):
        """Return whether no two runs agree, with all pins neither, of a program that starts what no pin reaches."""
        ends = self._ends_without_pins()
        if self._runs.run_on or chance.most_frequent(ends) > 1 or not self._unreached_rows():
            return False
        pins = self._expand_pins(candidates, False)
        self._progress.planned += _FIRST_RUNS
        runs = self.run_series(pins, _FIRST_RUNS, whole=True)
        ends += [self._end_of(run) for run in runs if not run.failed]
        if runs[-1].failed or chance.most_frequent(ends) > 1:
            return False
        self._add_tried("{} pinned: differs within {} runs".format(self._describe_pins(pins), len(runs)))
        return True

    def _unreached_rows(self):
        """Return the rows of user's lines that ask another machine, or start a program that does more than answer."""
        rows = self.ledger_rows("network") + self.ledger_rows("system")
        return [row for row in rows if row.is_in_user_code and
                (row.kind == "network" or kinds.ACTS in map(_unquoted, row.values))]

    def _find_background_thread(self):
        """Return the kind of threads that run freely, if one such line alone suffices, else None."""
        for place in self.background_lines():
            if self.agree({_BACKGROUND: [place]}):
                self._line_pins = {_BACKGROUND: [place]}
                return [_BACKGROUND]
        return None

    def _find_beside_background_threads(self, candidates):
        """Return the smallest set with that kind, if threads run freely and all pins suffice, else None."""
        names = candidates + [_BACKGROUND]
        is_enough = self._runs.run_on and self.agree(self._expand_pins(names, False))
        self._pins_address_lines = False
        return self._minimize(names) if is_enough else None

    def _find_likeliest_line(self, names):
        """Return the pins of the likeliest kind at its likeliest line if they suffice, else {}.

        Most programs have one cause.
        """
        for name in names:
            places = self._places.candidates(name)[:1]
            is_alone = not kinds.BY_NAME[name].required_pins
            if places and self._rank(name)[0] < 1 and is_alone and self.agree({name: places}):
                return {name: places}
        return {}

    def _minimize(self, names):
        coarse_first = sorted(names, key=lambda name: -kinds.BY_NAME[name].coarseness)
        return ddmin(coarse_first, lambda subset: self.agree(self._expand_pins(subset, self._pins_address_lines)))

    def _expand_pins(self, names, lines=True):
        """Return the pins of these kinds and of those that they need.

        lines: whether to pin addresses at the user's lines, if there are any. Such a pin needs no other one.
        """
        pins = dict.fromkeys(names)  # type: dict
        places = self.users_lines("addresses")
        for name in names:
            if name == "addresses" and lines and places:
                pins[name] = places
            else:
                required = set(kinds.BY_NAME[name].required_pins) - self._endless
                pins.update((needed_kind, None) for needed_kind in required)
        return pins

    def _drop_helpers(self, needed):
        """Return the kinds without those that are pinned only because addresses need their pins.

        Such a kind is a cause only if the runs differ again while it is pinned in the calls of libraries alone.
        """
        helpers = [name for name in needed if name in kinds.Addresses.required_pins]
        causes = []
        for name in helpers:
            user_places = set(self.read_files() if name == "files" else self.users_lines(name))
            all_places = self.carried_files() if name == "files" else {row.place for row in self.ledger_rows(name)}
            library_places = sorted(all_places - user_places)
            if user_places and not self.agree(dict(self._expand_pins(needed, False), **{name: library_places})):
                causes.append(name)
        return [name for name in needed if name not in helpers or name in causes]

    def _rank(self, name):
        """Return (0 very likely, 1 possible or 2 unlikely, a number for the order among equals)."""
        order = [kind.name for kind in kinds.ALL].index(name)
        if name == "files":
            return (-1 if self.only_first_differs() else 0 if self.read_files() else 2), order
        if name == "schedule":
            return 0, order
        if name == "random":
            has_user_draw = any(row.is_in_user_code or row.what == kinds.FIRST_DRAW for row in self.ledger_rows(name))
            return (0 if has_user_draw else 2), order
        if name == "mtime" and self._are_times_new():
            return (1 if self.differing_places(name) else 2), order
        if name in _SHOW_VALUES:
            return (0 if self.differing_places(name) else _SHOW_VALUES[name]), order
        if name in ("switches", "one-thread") or not any(row.is_in_user_code for row in self.ledger_rows(name)):
            return 2, order
        return (1 if name in ("clock", "memory", "one-worker") else 0), order

    def _are_times_new(self):
        """Return whether a line asks for the time of a file that a run wrote: it differs whatever is in the file."""
        values = [value for row in self.ledger_rows("mtime") if row.is_in_user_code for value in row.values]
        return any(float(time_of_file) >= self._began for value in values for time_of_file in _SECONDS.findall(value))

    # The results of the runs without pins

    def ledger_rows(self, kind):
        """Return the LedgerRows of a kind in the runs without pins."""
        return [row for run in self.baseline for row in run.ledger if row.kind == kind]

    def background_lines(self):
        """Return the lines that start threads which run freely: those that compute before those that wait."""
        return sorted(self._runs.run_on, key=lambda place: (self._runs.run_on[place], place))

    def users_lines(self, kind):
        """Return the user's lines at which a kind enters."""
        return sorted({row.place for row in self.ledger_rows(kind) if row.is_in_user_code})

    def first_draws(self):
        """Return {a global generator without a seed: the line that drew from it first}."""
        rows = [row for row in self.ledger_rows("random") if row.what == kinds.FIRST_DRAW and row.values]
        return {row.place: _line_of(row) for row in rows}

    def differing_places(self, kind):
        """Return the user's lines whose values differ between the first two runs."""
        events = [{}, {}]
        for index, run in enumerate(self.baseline[:2]):
            for row in run.ledger:
                if row.kind == kind and row.is_in_user_code:
                    events[index].setdefault(row.place, []).append((row.position, row.what, row.count, row.digest))
        return sorted(
            place
            for place in set(events[0]) | set(events[1])
            if sorted(events[0].get(place, [])) != sorted(events[1].get(place, []))
        )

    def only_first_differs(self):
        """Return whether only the first run differs, and left files because of which the others may."""
        return bool(self.carried_files()) and _only_first_differs(self.interventions.runs)

    def carried_files(self):
        """Return the paths of the files that the first run created or changed."""
        return set(self.baseline[0].files)

    def read_files(self):
        """Return {path: (place, use)} of those files that the second run read, asked for, or listed."""
        places = {row.what: row.place for row in self.baseline[1].ledger if row.kind == "files"}
        first_uses = {}
        for path in sorted(self.carried_files()):
            possible_uses = (("read", path), ("ask for", path), ("list", os.path.dirname(path)))
            uses = [(places[" ".join(use)], use[0]) for use in possible_uses if " ".join(use) in places]
            if uses:
                first_uses[path] = uses[0]
        return first_uses

    def _list_noted(self, names):
        """Return texts about the calls of these kinds at the user's lines that no pin reached."""
        rows = [row for name in names for row in self.ledger_rows(name)]
        return _texts_of_calls(row for row in rows if (row.kind, row.place, row.what) not in self._held_calls)

    # Variations

    def _try_variations(self):
        """Find latent causes of runs that agree: vary what another machine may answer otherwise."""
        names = [name for name in _VARIED if self._users_places(name)] + [_PROCESSORS]
        if "PYTHONHASHSEED" in os.environ:
            names.append("hash-seed")  # that the runs agree may rest on it
        self.interventions.varied += names
        if len(names) > len(_SEEDS) and not any(self._differs_varied(names, seed, or_fails=True) for seed in _SEEDS):
            return
        for name in names:
            is_confirmed = any if name == "time-zone" else all  # no chance is in it, and one of two may share the day
            if is_confirmed(self._differs_varied([name], seed) for seed in _SEEDS):
                self.interventions.latent.append({"kind": name, "places": self._users_places(name)})

    def _users_places(self, name):
        """Return the user's lines at which a varied kind enters."""
        return self.users_lines(_ENTERS_BY.get(name, name))

    def _differs_varied(self, names, seed, or_fails=False):
        """Return whether a run with varied kinds ends unlike all others, or, if that counts, fails."""
        self._progress.planned += 1
        self._copy.restore()
        run = self._runs.run(0, vary=dict.fromkeys(names, seed), what="varied: " + " and ".join(names))
        compared = self.interventions.compared
        tiers = [compared] if compared in (WEIGHTS, ERRORS) else [FILES, PRINTED]
        if run.failed:
            return or_fails
        return any(
            run.ends[tier] not in {run_without.ends[tier] for run_without in self.baseline} for tier in tiers
        )


class _LimitReachedError(Exception):
    """The search made as many runs as it may."""


def _key(pins):
    return repr(sorted(pins.items(), key=str))


def _texts_of_calls(rows):
    return sorted({"{} at {}".format(row.what, row.place) for row in rows if row.is_in_user_code})


def _only_first_differs(ends):
    return len(ends) > 2 and ends[0] != ends[1] and len(set(ends[1:])) == 1


def _line_of(row):
    """Return the line of a LedgerRow; for an unseeded global generator, the line of its first draw."""
    return row.values[0].strip("'") if row.what == kinds.FIRST_DRAW and row.values else row.place


def _unquoted(value):
    return value.strip("'")


def _count_held_calls(pins, rows):
    """Return {kind: number of calls that got a pinned value}; 1 for kinds that are pinned from outside."""
    counts = collections.Counter({name: 1 for name in pins if name in _OUTSIDE})
    for row in rows:
        counts[row.kind] += row.held if row.kind in pins else 0
    return {name: counts[name] for name in pins}
