"""The advice against an order of completion follows from the call that the ledger has."""

from __future__ import annotations

from typing import Any

import pytest

from tfdeterminism.trace.causes import source_fixes
from tfdeterminism.trace.interpose import kinds
from tfdeterminism.trace.schema import calls

# (program, what its last line is noted as, a part of the advice)
CALLS = [
    ("import queue\nq = queue.Queue(); q.put(1)\nq.get(timeout=1)", "get with a timeout", "without a timeout"),
    ("import queue\nq = queue.Queue(); q.put(1)\nq.get(True, 1)", "get with a timeout", "without a timeout"),
    ("import queue\nq = queue.Queue(); q.put(1)\nq.get_nowait()", "get_nowait", "without a timeout"),
    ("import queue\nq = queue.Queue()\nq.put(1, False)", "put with a timeout", "without a timeout"),
    ("import queue\nq = queue.Queue(); q.put(1)\nq.get()", "get", "number of its task"),
    ("import threading\none = threading.Thread(target=int)\none.start()", "start", "let each task end"),
]
POOL = (
    "from concurrent.futures import ThreadPoolExecutor as P, wait\np = P(2); fs = [p.submit(abs, n) for n in (1, 2)]\n"
)
CALLS += [
    (POOL + "wait(fs)", "wait", "not through the sets"),
    (POOL + "wait(fs, 9)", "wait with a timeout", "without a timeout"),
    (POOL + "wait(fs, return_when='FIRST_COMPLETED')", "wait for the first", "which is the first"),
]
WORKERS = "from multiprocessing.pool import ThreadPool\np = ThreadPool(2)\n"
CALLS += [
    (WORKERS + "p.apply_async(abs, (1,), callback=print).get()", "apply_async with a callback", "order of submission"),
    (WORKERS + "p.apply_async(abs, (1,)).get()", "apply_async", "let each task end"),
]


@pytest.mark.parametrize(("program", "call", "words"), CALLS)
def test_the_advice_is_for_the_call(program: str, call: str, words: str, runner: Any) -> None:
    run = runner(program).runs.run(1)
    assert not run.failed, run.failed.cause
    line = len(program.splitlines())
    noted = {row.what for row in run.ledger if row.kind == "completion" and row.place == f"main.py:{line}"}
    assert noted == {call}
    assert words in source_fixes.advice("completion", calls=sorted(noted))


def test_a_thread_that_is_joined_is_not_advised_to_be_joined(runner: Any) -> None:
    program = """
import threading
stop, count = threading.Event(), [0]
def spin():
    while not stop.is_set():
        count[0] += 1
one = threading.Thread(target=spin)
one.start()
sum(range(10000))
stop.set()
one.join()
"""
    run = runner(program).runs.run(1)
    (row,) = [row for row in run.ledger if row.kind == "background-thread" and row.what == "joined"]
    assert row.place == "main.py:7"
    joined, free = (source_fixes.advice("background-thread", calls=calls) for calls in (["start", "joined"], ["start"]))
    assert "told to end" in joined and "told to end" not in free and "wait for its end" in free


def test_an_edit_has_its_own_words() -> None:
    one_worker = source_fixes.advice("completion", ["model.fit(rows, workers=1)"], ["submit"])
    in_turn = source_fixes.advice("completion", ["    [await _one for _one in [g(x) for x in y]]"], ["gather"])
    assert one_worker == "use one worker" and "let each task end" in in_turn
    assert "let each task end" not in source_fixes.advice("completion", calls=["as_completed", "submit"])
    assert "in_order=True" in source_fixes.advice("completion", calls=["in_order=False"])


@pytest.mark.parametrize("name", [name for name in vars(calls) if name.isupper()])
def test_names_of_calls_are_those_of_the_ledger(name: str) -> None:
    assert getattr(calls, name) == getattr(kinds, name)
