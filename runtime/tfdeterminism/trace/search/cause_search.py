"""The cause, proved: with it taken away, and only it, the runs agree.

Runs without pins until two differ; likely kinds alone; all at once, and the smallest part that suffices; then the
lines.
"""

import collections
import math
import os

from ..interpose import kinds
from .interposed_runs import FILES, PRINTED, WEIGHTS
from .minimize import ddmin
from .place_search import PlaceSearch
from .proven_cause import NOT_PROVED, PROVEN, SAME, Interventions, ProvenCause
from .summed_tensors import SummedTensors

_RISK = 0.05  # that runs which would differ agree by chance so often
_LIKELY = 5  # kinds that are tried alone
_ALWAYS = ("hash-seed", "addresses", "memory", "switches", "one-thread")  # leave no trace in the ledger
_FINE = 3  # pins that are less coarse take one thing away
_NOTED = tuple(kind.name for kind in kinds.ALL if not kind.pinned)
_CONSTANT = tuple(kind.name for kind in kinds.ALL if kind.constant)
_LONG_RUN = 600    # seconds
_RUNS_OF_A_PROOF = 12
_FIRST_RUNS = 3  # without pins, at least
_LONGER = 3  # times as many, while what differs enters at a line
_RARELY = ("hash-seed", "random", "pid")
_VARIED = ("listing", "mtime", "completion", "time-zone", "machine")
_OUTSIDE = ("files", "schedule", "switches", "one-thread")  # their pins give no values inside the program
_PROCESSORS = "processors"
_ENTERS_BY = {"time-zone": "clock"}  # what is varied: the kind whose lines tell where it enters
_SEEDS = (1, 2)  # of variations: one run that differs may do so by chance


class CauseSearch(object):
    """runs: an interposed_runs.InterposedRuns; copy: the program_copy.ProgramCopy in which they run; limit: runs
    without pins at most; schedules: schedules.Schedules."""

    def __init__(self, runs, copy, limit, schedules, progress):
        self._runs, self._copy, self._limit, self._schedules = runs, copy, limit, schedules
        self._progress, self._known = progress, {}
        self._places, self._sums = PlaceSearch(self, copy), SummedTensors(self, runs, copy)
        self._lines = True  # are addresses pinned at lines alone?
        self._line_pins = {}  # of a line that was proved before its kind
        self.held = {}  # kind: how often its pin gave a value in a run: one that did nothing is not praised
        self.baseline = []  # InterposedRuns without pins
        self.found = Interventions()

    def search(self):
        """The Interventions. Raises launcher.ProgramFailedError where the program fails without pins."""
        self._run_unpinned()
        found = self.found
        if found.distinct == 1:
            found.verdict = SAME
            self._vary()
            found.noted = self._noted(name for name in _NOTED if name not in found.varied)
        else:
            found.needed = self._needed()
            self._find_kinds()
            found.noted = self._noted(name for name in _NOTED if name not in _CONSTANT)
        found.total = self._runs.count
        return found

    # Runs

    def _run_unpinned(self):
        """In one folder that is not restored between them, as a user runs them."""
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
            run.files = self._copy.changed()
            if turn == 0:
                self._tell_time(run.seconds)
            self.baseline.append(run)
            self._compare()
            if turn + 1 >= _FIRST_RUNS and self.found.distinct > 1:
                break

    def _may_differ(self):
        """Does a line of the user's get what differs between runs, so that a difference may be rare?"""
        return any(self.differing_places(name) for name in _RARELY)

    def _tell_time(self, seconds):
        """Before hours pass: how long it will take."""
        if seconds > _LONG_RUN:
            self._progress.print_line(
                "  a run takes {:.0f} min, a proof about {} runs: --steps N ends each after N training steps".format(
                    seconds / 60, _RUNS_OF_A_PROOF))

    def _compare(self):
        """Weights, if there are any; else written files where they differ, else what is printed."""
        done = self.baseline
        known = [tier for tier in (WEIGHTS, FILES, PRINTED) if all(one.ends[tier] is not None for one in done)]
        differing = [tier for tier in known if len({one.ends[tier] for one in done}) > 1]
        self.found.compared = WEIGHTS if WEIGHTS in known else (differing + known)[0]
        self.found.also_differ = [tier for tier in differing if tier != self.found.compared]
        ends = [one.ends[self.found.compared] for one in done]
        self.found.runs = [ends.index(end) for end in ends]

    def _needed(self):
        """How many runs have to agree, so that runs which differ as the ones without pins do agree seldom."""
        if self.only_first_differs():
            return _FIRST_RUNS
        ends = self.found.runs
        pairs = [(a, b) for at, a in enumerate(ends) for b in ends[at + 1 :]]
        alike = (sum(a == b for a, b in pairs) + 1.0) / (len(pairs) + 2.0)
        return 1 + max(2, int(math.ceil(math.log(_RISK) / math.log(alike))))

    def series(self, pins, number):
        """Runs from the initial files; with "files" pinned, each of them. Ends once two differ, or one fails."""
        done = []
        for turn in range(number):
            if turn == 0 or pins.get("files", ()) is None:
                self._copy.restore()
            elif "files" in pins:
                self._copy.restore_only(pins["files"])
            done.append(self._runs.run(turn, pins, what="pinned: " + self._words(pins) if pins else "with the fix"))
            if done[-1].failed or not self.alike(done):
                break
        return done

    def alike(self, done):
        """Did these runs end alike?"""
        return len({one.ends[self.found.compared] for one in done}) == 1

    def agree(self, pins):
        """Do the runs agree with these pins? pins: {kind: None, or its places}."""
        key = repr(sorted(pins.items(), key=str)), self.found.needed
        if key not in self._known:
            self._progress.planned += self.found.needed
            done = self.series(pins, self.found.needed)
            failed = done[-1].failed
            self._progress.planned -= self.found.needed - len(done)
            alike = not failed and self.alike(done)
            self.held.update(_held(pins, done[-1].ledger))
            no_hold = alike and not any(self.held[name] for name in pins)
            self._known[key] = alike and not no_hold
            outcome = "the program fails" if failed else "took no hold" if no_hold else (
                "equal in {} runs" if alike else "differs within {} runs").format(len(done))
            self.found.tried.append("{} pinned: {}".format(self._words(pins), outcome))
            self._progress.print_line("  " + self.found.tried[-1])
        return self._known[key]

    def _words(self, pins):
        return " and ".join(
            sorted(
                name if places is None else "{} at {}".format(name, ", ".join(map(self._copy.name_of, places)))
                for name, places in pins.items()
            )
        )

    # Kinds

    def _find_kinds(self, again=2):
        found = self.found
        needed = self._smallest_set(self._candidates())
        if needed is None:
            found.verdict = NOT_PROVED
            return
        if "addresses" in needed and not self._lines:
            needed = self._without_helpers(needed)
        pins = self._line_pins or self._expanded(needed, self._lines)
        found.causes = [
            ProvenCause(
                kinds.BY_NAME[name], pins, found.needed, name == "files" and self.only_first_differs()
            )
            for name in needed
        ]
        for cause in found.causes:
            self._places.find(cause)
        only_once = bool(self._line_pins) and found.needed > _FIRST_RUNS  # runs that differ seldom may agree by chance
        by_lines = all(cause.places and cause.kind.has_places for cause in found.causes)
        if by_lines and not only_once or self._agree_again(pins):
            found.verdict = PROVEN
            for cause in found.causes:
                cause.pinned_calls = self.held[cause.kind.name]
                cause.details += self._ranks_of(cause)
                self._sums.find(cause)
            return
        found.causes, found.verdict = [], NOT_PROVED
        if again:
            found.needed *= 2
            self._find_kinds(again - 1)

    def _ranks_of(self, cause):
        """A line about the ranks that a cause enters, where it does not enter all."""
        lines = {str(place) for place in cause.places}
        rows = [row for one in self.baseline for row in one.ledger]
        every = {row.rank for row in rows} - {""}
        some = {row.rank for row in rows if row.kind == cause.kind.name and _line_of(row) in lines} - {""}
        if not some or some == every:
            return []
        return ["in rank {} only, of {} ranks".format(", ".join(sorted(some)), len(every))]

    def _agree_again(self, pins):
        """Do the runs agree once more, anew? Where lines alone were pinned, these runs have shown it."""
        self._progress.planned += self.found.needed
        done = self.series(pins, self.found.needed)
        if done[-1].failed or not self.alike(done):
            self.found.tried.append("{} pinned: equal at first, and not again".format(self._words(pins)))
            return False
        for cause in self.found.causes:
            cause.runs += len(done)
        return True

    def _candidates(self):
        silent = {kind.name for kind in kinds.ALL if kind.name not in _ALWAYS and not self.events(kind.name)}
        if self.carried_files():
            silent.discard("files")
        else:
            silent.add("files")
        silent.update(_NOTED)
        (silent.discard if self._schedules else silent.add)("schedule")
        return [kind.name for kind in kinds.ALL if kind.name not in silent]

    def _smallest_set(self, candidates):
        """Names of the kinds without which the runs differ, and with which pinned they agree; None if they never do."""
        self._lines = True
        ranked = sorted(candidates, key=self._rank)
        self._line_pins = self._likeliest_line(ranked[:1])
        if self._line_pins:
            return ranked[:1]
        for name in ranked[:_LIKELY]:
            if self._rank(name)[0] < 2 and self.agree(self._expanded([name])):
                return [name]
        likely = [name for name in candidates if self._rank(name)[0] < 2]
        fine = [name for name in candidates if kinds.BY_NAME[name].coarse < _FINE]
        without_addresses = [name for name in fine if name != "addresses"]
        tiers = [(likely, True), (without_addresses, True), (fine, True), (fine, False), (candidates, False)]
        smaller = []  # type: list
        for names, lines in tiers:
            if names and self.agree(self._expanded(names, lines)):
                self._lines = lines
                added = [name for name in names if name not in smaller]  # one of these is needed
                alone = next(([name] for name in added if self.agree(self._expanded([name], lines))), None)
                return alone or self._minimized(names)
            smaller = names
        return None

    def _likeliest_line(self, names):
        """The pins of the likeliest kind at its likeliest line, if that suffices: most programs have one cause."""
        for name in names:
            places = self._places.candidates(name)[:1]
            if places and self._rank(name)[0] < 1 and not kinds.BY_NAME[name].needs and self.agree({name: places}):
                return {name: places}
        return {}

    def _minimized(self, names):
        coarse_first = sorted(names, key=lambda name: -kinds.BY_NAME[name].coarse)
        return ddmin(coarse_first, lambda part: self.agree(self._expanded(part, self._lines)))

    def _expanded(self, names, lines=True):
        """The pins of these kinds, with those that they need. lines: pin addresses at the user's lines, if there are
        any, which needs no other pin."""
        pins = dict.fromkeys(names)  # type: dict
        places = self.users_lines("addresses")
        for name in names:
            if name == "addresses" and lines and places:
                pins[name] = places
            else:
                pins.update((other, None) for other in kinds.BY_NAME[name].needs)
        return pins

    def _without_helpers(self, needed):
        """A pin that addresses need is a cause only if with the libraries' own calls alone pinned the runs differ
        again."""
        helpers = [name for name in needed if name in kinds.Addresses.needs]
        own = []
        for name in helpers:
            users = set(self.users_lines(name))
            rest = sorted({row.place for row in self.events(name)} - users)
            if users and not self.agree(dict(self._expanded(needed, False), **{name: rest})):
                own.append(name)
        return [name for name in needed if name not in helpers or name in own]

    def _rank(self, name):
        """(how unlikely, a number for the order): 0 very likely (a line of the user's), 1 possible, 2 anything else."""
        order = [kind.name for kind in kinds.ALL].index(name)
        if name == "files":
            return (-1 if self.only_first_differs() else 0 if self.read_files() else 2), order
        if name == "schedule":
            return 0, order
        if name == "random":
            return (
                0 if any(row.is_users or row.what == kinds.FIRST_DRAW for row in self.events(name)) else 2
            ), order
        if name in ("hash-seed", "listing", "mtime", "addresses"):
            return (0 if self.differing_places(name) else 1 if name == "hash-seed" else 2), order
        if name in ("switches", "one-thread") or not any(
            row.is_users for row in self.events(name)
        ):
            return 2, order
        return (1 if name in ("clock", "memory", "one-worker") else 0), order

    # What the runs without pins tell

    def events(self, kind):
        """The LedgerRows of a kind in the runs without pins."""
        return [row for one in self.baseline for row in one.ledger if row.kind == kind]

    def users_lines(self, kind):
        """The user's lines at which a kind enters."""
        return sorted({row.place for row in self.events(kind) if row.is_users})

    def first_draws(self):
        """{a global generator without a seed: the line that drew from it first}"""
        rows = [row for row in self.events("random") if row.what == kinds.FIRST_DRAW and row.values]
        return {row.place: _line_of(row) for row in rows}

    def differing_places(self, kind):
        """The user's lines whose values differ between the first two runs."""
        seen = [{}, {}]
        for number, run in enumerate(self.baseline[:2]):
            for row in run.ledger:
                if row.kind == kind and row.is_users:
                    seen[number].setdefault(row.place, []).append(
                        (row.position, row.what, row.count, row.digest)
                    )
        return sorted(
            place
            for place in set(seen[0]) | set(seen[1])
            if sorted(seen[0].get(place, [])) != sorted(seen[1].get(place, []))
        )

    def only_first_differs(self):
        ends = self.found.runs
        return len(ends) > 2 and ends[0] != ends[1] and len(set(ends[1:])) == 1

    def carried_files(self):
        """Paths of the files that the first run left otherwise than it found them."""
        return set(self.baseline[0].files)

    def read_files(self):
        """{path: (place, how)} of those that the second run read, asked for, or listed the folder of."""
        seen = {row.what: row.place for row in self.baseline[1].ledger if row.kind == "files"}
        found = {}
        for path in sorted(self.carried_files()):
            asked = (("read", path), ("ask for", path), ("list", os.path.dirname(path)))
            uses = [(seen[" ".join(one)], one[0]) for one in asked if " ".join(one) in seen]
            if uses:
                found[path] = uses[0]
        return found

    def _noted(self, names):
        """What of the kinds of these names the user's lines asked for."""
        rows = [row for name in names for row in self.events(name) if row.is_users]
        return sorted({"{} at {}".format(row.what, row.place) for row in rows})

    # Variations

    def _vary(self):
        """No difference was seen: does one come if what another machine may give otherwise is varied?"""
        wanted = [name for name in _VARIED if self._users_places(name)] + [_PROCESSORS]
        if "PYTHONHASHSEED" in os.environ:
            wanted.append("hash-seed")  # that the runs agree may rest on it
        self._progress.planned += len(wanted)
        for name in wanted:
            self.found.varied.append(name)
            confirmed = any if name == "time-zone" else all  # no chance is in it, and one of two may share the day
            if confirmed(self._differs_varied(name, seed) for seed in _SEEDS):
                self.found.latent.append({"kind": name, "places": self._users_places(name)})

    def _users_places(self, name):
        """The user's lines at which what is varied enters."""
        return self.users_lines(_ENTERS_BY.get(name, name))

    def _differs_varied(self, name, seed):
        """Does a run in which a kind is varied end otherwise than all without? A run that fails does not count."""
        self._copy.restore()
        run = self._runs.run(0, vary={name: seed}, what="varied: " + name)
        tiers = [WEIGHTS] if self.found.compared == WEIGHTS else [FILES, PRINTED]
        return not run.failed and any(run.ends[tier] not in {one.ends[tier] for one in self.baseline} for tier in tiers)


def _line_of(row):
    """The line of a LedgerRow: of a global generator that nobody seeded, of its first draw."""
    return row.values[0].strip("'") if row.what == kinds.FIRST_DRAW and row.values else row.place


def _held(pins, rows):
    """{kind: how often its pin gave a value}; of what is pinned from outside and leaves no row, once."""
    held = collections.Counter({name: 1 for name in pins if name in _OUTSIDE})
    for row in rows:
        held[row.kind] += row.held if row.kind in pins else 0
    return {name: held[name] for name in pins}

