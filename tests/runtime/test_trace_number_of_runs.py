"""How many runs the search for a cause makes. Models of programs, whose runs take no time, are searched."""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

from tfdeterminism.trace.schema.ledger import LedgerRow
from tfdeterminism.trace.search import chance
from tfdeterminism.trace.search.cause_search import CauseSearch
from tfdeterminism.trace.search.interposed_runs import PRINTED, InterposedRun
from tfdeterminism.trace.search.progress import Progress

Pins = dict[str, Any]  # {kind of nondeterminism: the lines at which its value is the same in every run; None: all}


class Copy:
    """Replaces the copy of a program's folder: a model writes no file."""

    root = "/nowhere"

    def restore(self) -> None: ...
    def learn_outside(self, ledger: list[LedgerRow]) -> None: ...
    def remove_temporary(self, ledger: list[LedgerRow]) -> None: ...
    def carried(self) -> dict[str, str]:
        return {}

    def name_of(self, place: str) -> str:
        return place


class ModelRuns:
    """Runs of a model.

    events: (kind, line) of each call; end(pins, number): what a run prints; pins_seen: pins of each run.
    """

    run_on = MappingProxyType[str, bool]({})  # lines of threads for which a pin waited in vain

    def __init__(self, events: list[tuple[str, str]], end: Callable[[Pins, int], object]) -> None:
        self._events, self._end, self.pins_seen = events, end, list[Pins]()

    @property
    def count(self) -> int:
        return len(self.pins_seen)

    def run(self, turn: int, pins: Pins | None = None, **_: Any) -> InterposedRun:
        pins = pins or {}
        run = InterposedRun(1.0)
        self.pins_seen.append(pins)
        run.ends[PRINTED] = self._end(pins, self.count)
        for kind, place in self._events:
            held = int(holds(pins, kind, place))
            # what: the function; held: how many of its calls were pinned; position: of the process in the process tree.
            row = {"kind": kind, "place": place, "what": "call", "count": 1, "held": held, "position": "0"}
            run.ledger.append(LedgerRow({**row, "values": [str(self.count)], "digest": str(self.count)}))
        return run


def holds(pins: Pins, kind: str, place: str) -> bool:
    return kind in pins and (pins[kind] is None or place in pins[kind])


def searched(runs: ModelRuns) -> tuple[Any, str]:
    """Return the interventions and what the search printed about its progress."""
    printed = io.StringIO()
    # Five runs without pins, no schedules, and twelve runs in the progress shown.
    search: Any = CauseSearch(runs, Copy(), 5, (), Progress(12, out=printed))
    return search.search(), printed.getvalue()


def clock_and_a_rare_order(lines: int) -> Callable[[Pins, int], object]:
    """The last of these lines reads the clock, and in one of four runs threads end in another order."""

    def end(pins: Pins, number: int) -> object:
        time = 0 if holds(pins, "clock", f"m.py:{lines}") else number
        order = 0 if holds(pins, "completion", "m.py:9") else number % 4 == 0
        return time, order

    return end


def test_pins_with_which_runs_differed_are_not_tried_again() -> None:
    events = [("completion", "m.py:9"), ("clock", "m.py:1"), ("random", "m.py:8")]
    runs = ModelRuns(events, clock_and_a_rare_order(1))
    interventions, printed = searched(runs)
    assert sorted(cause.kind.name for cause in interventions.causes) == ["clock", "completion"]
    differing = [line for line in interventions.tried if "differs" in line]
    assert "equal at first, and not again" in printed and "runs must agree" in printed
    assert sorted(differing) == sorted(set(differing))


def test_a_few_lines_are_tried_alone_before_any_set_of_them() -> None:
    lines = 4
    runs = ModelRuns(
        [("clock", f"m.py:{line}") for line in range(1, lines + 1)],
        lambda pins, number: 0 if holds(pins, "clock", f"m.py:{lines}") else number,
    )
    interventions, _ = searched(runs)
    assert [str(place) for place in interventions.causes[0].places] == [f"m.py:{lines}"]
    at_lines = [tuple(pins["clock"]) for pins in runs.pins_seen if pins.get("clock")]
    tried = [places for places, _ in itertools.groupby(at_lines)]
    assert tried == [(f"m.py:{line}",) for line in range(1, lines + 1)]


def clock_and_order_at_random(seed: int, rate: float) -> Callable[[Pins, int], object]:
    """The third line reads the clock, and in so many runs threads end in another order."""
    rng = random.Random(seed)

    def end(pins: Pins, number: int) -> object:
        time = 0 if holds(pins, "clock", "m.py:3") else rng.random()
        return time, not holds(pins, "completion", "m.py:9") and rng.random() < rate

    return end


EVENTS = [("completion", "m.py:9"), ("completion", "m.py:7"), ("random", "m.py:8")]
EVENTS += [("clock", f"m.py:{line}") for line in (1, 2, 3)]
CLOCK, ORDER = ("clock", ["m.py:3"]), ("completion", ["m.py:9"])


def causes_of(interventions: Any) -> list[tuple[str, list[str]]]:
    return sorted((cause.kind.name, [str(place) for place in cause.places]) for cause in interventions.causes)


def searched_models(rate: float, number: int) -> list[tuple[Any, int]]:
    """Return the interventions of so many models with a second cause at a rate, and how many runs each took."""
    searches = []
    for seed in range(number):
        runs = ModelRuns(EVENTS, clock_and_order_at_random(seed, rate))
        searches.append((searched(runs)[0], runs.count))
    return searches


def test_a_second_cause_that_is_rare_is_seldom_taken_for_another() -> None:
    for rate, found in ((0.5, 85), (0.25, 65)):
        causes = [causes_of(interventions) for interventions, _ in searched_models(rate, 100)]
        wrong = [one for one in causes if one not in ([CLOCK, ORDER], [CLOCK], [("clock", [])], [])]
        assert causes.count([CLOCK, ORDER]) > found, rate
        assert len(wrong) < 3, wrong


def test_what_is_said_of_an_unseen_cause_seldom_is_untrue() -> None:
    """unseen_share is the share of runs that another cause may change although so many runs agree."""
    for rate in (0.5, 0.25, 0.1):
        proven = [one for one, _ in searched_models(rate, 100) if one.verdict == "proven" and len(one.causes) == 1]
        assert sum(one.unseen_share() < rate for one in proven) <= 5, rate
    assert 0.62 < chance.unseen_share(3) < 0.64


def test_a_search_has_a_limit_of_runs_and_then_states_a_part() -> None:
    searches = searched_models(0.05, 60)
    assert max(runs for _, runs in searches) < 350
    parts = [one for one, _ in searches if one.verdict == "partly proven"]
    assert parts
    for interventions in parts:
        (cause,) = interventions.causes
        assert cause.kind.name == "clock" and cause.agreed <= cause.runs
        assert interventions.unseen_share() is None


def test_what_no_pin_reaches_is_seldom_called_proven() -> None:
    rng = random.Random(1)
    ends: list[Callable[[Pins, int], object]] = [
        lambda pins, number: rng.random() < 0.5,
        lambda pins, number: rng.random() < 0.1,
        lambda pins, number: rng.randrange(4),
    ]
    for end in ends:
        all_interventions = [searched(ModelRuns(EVENTS, end))[0] for _ in range(60)]
        assert sum(one.verdict == "proven" for one in all_interventions) <= 3
        reasons = {one.reason for one in all_interventions if one.verdict == "not proved"}
        assert reasons <= {"runs differ with all pins", "new runs did not confirm it", "limit of runs"}


def test_as_many_runs_agree_as_the_user_asks_for() -> None:
    end = clock_and_order_at_random(1, 0)
    runs = ModelRuns(EVENTS, end)
    search: Any = CauseSearch(runs, Copy(), 5, (), Progress(12, out=io.StringIO()), agree_runs=20)
    (cause,) = search.search().causes
    assert cause.place_runs >= 20 and search.interventions.unseen_share() < 0.15


def test_fishers_test() -> None:
    """The arguments are the ends of runs without pins, and of runs with them."""
    assert chance.probability(["a", "b", "c"], ["v"] * 3) == pytest.approx(1 / 20)
    assert chance.probability(["a", "b", "v"], ["v"] * 3) == pytest.approx(4 / 20)
    assert chance.probability(["v"] * 3, ["v"] * 3) == 1
    assert chance.probability(["a", "b", "c"], ["v"] * 11 + ["w"]) == pytest.approx(4 / 455)
