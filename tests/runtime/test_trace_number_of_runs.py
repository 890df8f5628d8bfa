"""How many runs the search for a cause makes. Models of programs, whose runs take no time, are searched."""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Callable
from typing import Any

from tfdeterminism.trace.schema.ledger import LedgerRow
from tfdeterminism.trace.search.cause_search import CauseSearch
from tfdeterminism.trace.search.interposed_runs import PRINTED, InterposedRun
from tfdeterminism.trace.search.progress import Progress

Pins = dict[str, Any]


class Copy:
    """The folder of a program that writes nothing."""

    root = "/nowhere"

    def restore(self) -> None: ...
    def learn_outside(self, ledger: list[LedgerRow]) -> None: ...
    def carried(self) -> dict[str, str]:
        return {}

    def name_of(self, place: str) -> str:
        return place


class ModelRuns:
    """Runs of a model.

    events: (kind, line) of each call; end(pins, number): what a run prints; pins_seen: pins of each run.
    """

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
            row = {"kind": kind, "place": place, "what": "call", "count": 1, "held": held, "position": "0"}
            run.ledger.append(LedgerRow({**row, "values": [str(self.count)], "digest": str(self.count)}))
        return run


def holds(pins: Pins, kind: str, place: str) -> bool:
    return kind in pins and (pins[kind] is None or place in pins[kind])


def searched(runs: ModelRuns) -> tuple[Any, str]:
    """Return the interventions and what the search printed about its progress."""
    printed = io.StringIO()
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


def test_a_second_cause_that_is_rare_is_seldom_taken_for_another() -> None:
    truth = [("clock", ["m.py:3"]), ("completion", ["m.py:9"])]
    events = [("completion", "m.py:9"), ("completion", "m.py:7"), ("random", "m.py:8")]
    events += [("clock", f"m.py:{line}") for line in (1, 2, 3)]
    found = []
    for seed in range(100):
        interventions, _ = searched(ModelRuns(events, clock_and_order_at_random(seed, 0.5)))
        causes = [(cause.kind.name, [str(place) for place in cause.places]) for cause in interventions.causes]
        found.append(sorted(causes))
    wrong = [causes for causes in found if causes not in (truth, truth[:1])]
    assert found.count(truth) > 85
    assert len(wrong) < 5, wrong
