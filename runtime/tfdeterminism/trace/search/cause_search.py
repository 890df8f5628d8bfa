"""The search for a cause by interventions: if it is pinned, and only it, the runs agree.

The steps are: runs without pins until two differ; each likely kind of nondeterminism alone; all kinds at once and the
smallest set that suffices; then the lines of the program.
"""

import collections
import math
import os

from ..interpose import kinds
from .interposed_runs import FILES, PRINTED, WEIGHTS
from .minimize import ddmin
from .place_search import PlaceSearch
from .proven_cause import FAILED, NOT_PROVED, PROVEN, SAME, Interventions, ProvenCause
from .summed_tensors import SummedTensors

_RISK = 0.05  # accepted probability that runs which can differ agree by chance
_LIKELY = 5  # kinds that are tried alone
_ALWAYS = ("hash-seed", "addresses", "memory", "switches", "one-thread")  # leave no trace in the ledger
_FINE = 3  # a pin with a smaller `coarseness` removes one source of nondeterminism alone
_NOTED = tuple(kind.name for kind in kinds.ALL if not kind.has_pin)
_CONSTANT = tuple(kind.name for kind in kinds.ALL if kind.constant)
_LONG_RUN = 600  # seconds
_RUNS_OF_A_PROOF = 12
_RUNS_OF_A_RATE = 6
_FIRST_RUNS = 3  # without pins, at least
_MOST_RUNS = 24  # that must agree because pinned runs seldom differed
_LONGER = 3  # factor on the number of runs while values at a line of the program differ
_RARELY = ("hash-seed", "random", "pid")
_VARIED = ("listing", "mtime", "completion", "time-zone", "machine")
_OUTSIDE = ("files", "schedule", "switches", "one-thread")  # their pins give no values inside the program
_PROCESSORS = "processors"
_ENTERS_BY = {"time-zone": "clock"}  # {varied kind: kind whose ledger rows show its lines}
_SEEDS = (1, 2)  # of variations; two, because one run may differ by chance


class CauseSearch(object):
    """The search for the causes of one program.

    runs: an interposed_runs.InterposedRuns; copy: the program_copy.ProgramCopy in which they run; limit: maximum of
    runs without pins; schedules: schedules.Schedules.
    """

    def __init__(self, runs, copy, limit, schedules, progress):
        self._runs, self._copy, self._limit, self._schedules = runs, copy, limit, schedules
        self._progress, self._agreements = progress, {}
        self._places, self._sums = PlaceSearch(self, copy), SummedTensors(self, runs, copy)
        self._pins_address_lines = True  # whether addresses are pinned at lines alone
        self._line_pins = {}  # of a line that was proved before its kind
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
            timers = [row for row in self.events("clock") if row.what in kinds.TIMERS]
            interventions.noted = sorted(interventions.noted + _texts_of_calls(timers))
        else:
            interventions.needed = self._required_runs()
            self._find_kinds()
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
        """Choose what is compared: weights if there are any, else files that differ, else the printed text."""
        runs = self.baseline
        known_tiers = [tier for tier in (WEIGHTS, FILES, PRINTED) if all(run.ends[tier] is not None for run in runs)]
        differing_tiers = [tier for tier in known_tiers if len({run.ends[tier] for run in runs}) > 1]
        self.interventions.compared = WEIGHTS if WEIGHTS in known_tiers else (differing_tiers + known_tiers)[0]
        self.interventions.also_differ = [tier for tier in differing_tiers if tier != self.interventions.compared]
        ends = [run.ends[self.interventions.compared] for run in runs]
        self.interventions.runs = [ends.index(end) for end in ends]

    def _required_runs(self):
        """Return how many runs must agree so that runs which differ as often as those without pins seldom do."""
        if self.only_first_differs():
            return _FIRST_RUNS
        return _runs_that_seldom_agree(self.interventions.runs)

    def run_series(self, pins, number, whole=False):
        """Run the program from its initial files and return the runs, which end once one fails or two differ.

        whole: whether runs that differ do not end them.

        Pinned "files" are restored before each run, all of them or those that the pin names.
        """
        runs = []
        for turn in range(number):
            if turn == 0 or pins.get("files", ()) is None:
                self._copy.restore()
            elif "files" in pins:
                self._copy.restore_only(pins["files"])
            what = "pinned: " + self._describe_pins(pins) if pins else "with the fix"
            runs.append(self._runs.run(turn, pins, what=what))
            if runs[-1].failed or not (whole or self.ends_agree(runs)):
                break
        return runs

    def ends_agree(self, runs):
        """Return whether these runs ended with the same result."""
        return len({run.ends[self.interventions.compared] for run in runs}) == 1

    def agree(self, pins):
        """Return whether the runs agree with these pins. pins: {kind: None, or its places}.

        Runs that differed prove it for any number of runs; runs that agreed, for their number.
        """
        key = repr(sorted(pins.items(), key=str))
        if self._agreements.get(key, (False, 0))[1] < self.interventions.needed:
            self._agreements[key] = self._try_pins(pins)
        return self._agreements[key][0]

    def agreed_runs(self, pins):
        """Return how many runs with these pins, for which agree() is true, agreed."""
        return self._agreements[repr(sorted(pins.items(), key=str))][1]

    def _try_pins(self, pins):
        """Return (whether runs with these pins agree, the number of runs for which that is proved)."""
        needed = self.interventions.needed
        self._progress.planned += needed
        runs = self.run_series(pins, needed)
        failed = runs[-1].failed
        self._progress.planned -= needed - len(runs)
        do_agree = not failed and self.ends_agree(runs)
        if not failed and not do_agree:
            self._learn_rate(runs)
        self.hold_counts.update(_count_held_calls(pins, runs[-1].ledger))
        has_no_hold = do_agree and not any(self.hold_counts[name] for name in pins)
        outcome = (
            FAILED
            if failed
            else "took no hold"
            if has_no_hold
            else ("equal in {} runs" if do_agree else "differs within {} runs").format(len(runs))
        )
        self._add_tried("{} pinned: {}".format(self._describe_pins(pins), outcome))
        return do_agree and not has_no_hold, needed if do_agree or failed else math.inf

    def _learn_rate(self, runs):
        """Require more runs to agree if these, with some causes pinned, differed so late that the rest is rare."""
        ends = [run.ends[self.interventions.compared] for run in runs if not run.failed]
        needed = min(_runs_that_seldom_agree(ends), _MOST_RUNS)
        if len(ends) > 2 and needed > self.interventions.needed and not _only_first_differs(ends):
            self._require_runs(needed)

    def _require_runs(self, needed):
        self.interventions.needed = needed
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

    def _find_kinds(self, retries=2):
        interventions = self.interventions
        names = self._find_smallest_set(self._candidates())
        if names is None:
            interventions.verdict = NOT_PROVED
            return
        if "addresses" in names and not self._pins_address_lines:
            names = self._drop_helpers(names)
        pins = self._line_pins or self._expand_pins(names, self._pins_address_lines)
        if self.agree(pins) and self._is_confirmed(names, pins):
            interventions.verdict = PROVEN
            for cause in interventions.causes:
                cause.pinned_calls = self.hold_counts[cause.kind.name]
                cause.details += self._ranks_of(cause)
                self._sums.find(cause)
            return
        interventions.causes, interventions.verdict = [], NOT_PROVED
        if retries:
            self._require_runs(max(interventions.needed, min(2 * interventions.needed, _MOST_RUNS)))
            self._find_kinds(retries - 1)

    def _is_confirmed(self, names, pins):
        """Set the causes and their places, and return whether new runs agree where earlier ones may have by chance.

        Runs that differ seldom do, and so do some of many sets of pins or lines that were tried.
        """
        runs, first_run_only = self.agreed_runs(pins), self.only_first_differs()
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
            return self._agree_again(pins)
        if sum(len(cause.places) for cause in causes) > 1:
            return self._agree_again(dict(pins, **{cause.kind.name: cause.pinned_places for cause in causes}))
        return not self._line_pins or self.interventions.needed <= _FIRST_RUNS or self._agree_again(pins)

    def _learn_rates_without_one(self, pins):
        """Run the program with all causes pinned but one, for each, and require the runs that this rate asks for."""
        for cause in self.interventions.causes:
            others = {name: places for name, places in pins.items() if name != cause.kind.name}
            self._progress.planned += _RUNS_OF_A_RATE
            self._learn_rate(self.run_series(others, _RUNS_OF_A_RATE, whole=True))

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

    def _agree_again(self, pins):
        """Return whether new runs agree with these pins of all causes, everywhere or at their lines alone."""
        self._progress.planned += self.interventions.needed
        runs = self.run_series(pins, self.interventions.needed)
        if runs[-1].failed or not self.ends_agree(runs):
            self._add_tried("{} pinned: equal at first, and not again".format(self._describe_pins(pins)))
            return False
        for cause in self.interventions.causes:
            cause.runs += len(runs)
        return True

    def _candidates(self):
        excluded = {kind.name for kind in kinds.ALL if kind.name not in _ALWAYS and not self.events(kind.name)}
        if self.carried_files():
            excluded.discard("files")
        else:
            excluded.add("files")
        excluded.update(_NOTED)
        (excluded.discard if self._schedules else excluded.add)("schedule")
        return [kind.name for kind in kinds.ALL if kind.name not in excluded]

    def _find_smallest_set(self, candidates):
        """Return the names of the smallest set of kinds with which pinned the runs agree, or None."""
        self._pins_address_lines = True
        ranked = sorted(candidates, key=self._rank)
        self._line_pins = self._find_likeliest_line(ranked[:1])
        if self._line_pins:
            return ranked[:1]
        for name in ranked[:_LIKELY]:
            if self._rank(name)[0] < 2 and self.agree(self._expand_pins([name])):
                return [name]
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
            smaller = names
        return None

    def _find_likeliest_line(self, names):
        """Return the pins of the likeliest kind at its likeliest line if they suffice, else {}.

        Most programs have one cause.
        """
        for name in names:
            places = self._places.candidates(name)[:1]
            if places and self._rank(name)[0] < 1 and not kinds.BY_NAME[name].needs and self.agree({name: places}):
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
                pins.update((needed_kind, None) for needed_kind in kinds.BY_NAME[name].needs)
        return pins

    def _drop_helpers(self, needed):
        """Return the kinds without those that are pinned only because addresses need their pins.

        Such a kind is a cause only if the runs differ again while it is pinned in the calls of libraries alone.
        """
        helpers = [name for name in needed if name in kinds.Addresses.needs]
        causes = []
        for name in helpers:
            user_places = set(self.users_lines(name))
            library_places = sorted({row.place for row in self.events(name)} - user_places)
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
            has_user_draw = any(row.is_in_user_code or row.what == kinds.FIRST_DRAW for row in self.events(name))
            return (0 if has_user_draw else 2), order
        if name in ("hash-seed", "listing", "mtime", "addresses"):
            return (0 if self.differing_places(name) else 1 if name == "hash-seed" else 2), order
        if name in ("switches", "one-thread") or not any(row.is_in_user_code for row in self.events(name)):
            return 2, order
        return (1 if name in ("clock", "memory", "one-worker") else 0), order

    # The results of the runs without pins

    def events(self, kind):
        """Return the LedgerRows of a kind in the runs without pins."""
        return [row for run in self.baseline for row in run.ledger if row.kind == kind]

    def users_lines(self, kind):
        """Return the user's lines at which a kind enters."""
        return sorted({row.place for row in self.events(kind) if row.is_in_user_code})

    def first_draws(self):
        """Return {a global generator without a seed: the line that drew from it first}."""
        rows = [row for row in self.events("random") if row.what == kinds.FIRST_DRAW and row.values]
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
        return _only_first_differs(self.interventions.runs)

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
        """Return texts about the calls of these kinds at the user's lines."""
        return _texts_of_calls(row for name in names for row in self.events(name))

    # Variations

    def _try_variations(self):
        """Find latent causes of runs that agree: vary what another machine may answer otherwise."""
        names = [name for name in _VARIED if self._users_places(name)] + [_PROCESSORS]
        if "PYTHONHASHSEED" in os.environ:
            names.append("hash-seed")  # that the runs agree may rest on it
        self._progress.planned += len(names)
        for name in names:
            self.interventions.varied.append(name)
            is_confirmed = any if name == "time-zone" else all  # no chance is in it, and one of two may share the day
            if is_confirmed(self._differs_varied(name, seed) for seed in _SEEDS):
                self.interventions.latent.append({"kind": name, "places": self._users_places(name)})

    def _users_places(self, name):
        """Return the user's lines at which a varied kind enters."""
        return self.users_lines(_ENTERS_BY.get(name, name))

    def _differs_varied(self, name, seed):
        """Return whether a run with a varied kind ends unlike all others. A failed run does not count."""
        self._copy.restore()
        run = self._runs.run(0, vary={name: seed}, what="varied: " + name)
        tiers = [WEIGHTS] if self.interventions.compared == WEIGHTS else [FILES, PRINTED]
        return not run.failed and any(
            run.ends[tier] not in {run_without.ends[tier] for run_without in self.baseline} for tier in tiers
        )


def _texts_of_calls(rows):
    return sorted({"{} at {}".format(row.what, row.place) for row in rows if row.is_in_user_code})


def _only_first_differs(ends):
    return len(ends) > 2 and ends[0] != ends[1] and len(set(ends[1:])) == 1


def _runs_that_seldom_agree(ends):
    """Return how many runs seldom agree by chance if they differ as often as runs with these ends."""
    pairs = [(a, b) for index, a in enumerate(ends) for b in ends[index + 1 :]]
    agreement = (sum(a == b for a, b in pairs) + 1.0) / (len(pairs) + 2.0)
    return 1 + max(2, int(math.ceil(math.log(_RISK) / math.log(agreement))))


def _line_of(row):
    """Return the line of a LedgerRow; for an unseeded global generator, the line of its first draw."""
    return row.values[0].strip("'") if row.what == kinds.FIRST_DRAW and row.values else row.place


def _count_held_calls(pins, rows):
    """Return {kind: number of calls that got a pinned value}; 1 for kinds that are pinned from outside."""
    counts = collections.Counter({name: 1 for name in pins if name in _OUTSIDE})
    for row in rows:
        counts[row.kind] += row.held if row.kind in pins else 0
    return {name: counts[name] for name in pins}
