"""Tasks of pools are named by the order in which they are submitted, whichever thread runs them."""

from __future__ import annotations

import concurrent.futures.thread
import multiprocessing.pool
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tfdeterminism.trace import backends
from tfdeterminism.trace.capture import pool_tasks
from tfdeterminism.trace.capture.definitions import Definitions
from tfdeterminism.trace.capture.eager_keys import EagerKeys


@pytest.fixture
def recorder() -> Iterator[Any]:
    """Yield the recorder of a recording that watches pools."""
    lock = threading.RLock()
    fake = SimpleNamespace(
        active=True, eager=EagerKeys(lock, Definitions(lock, backends.Backend())), steps=SimpleNamespace(number=0)
    )
    watched = pool_tasks.PoolTasks(SimpleNamespace(recorder=fake))
    modules = {"concurrent.futures.thread": concurrent.futures.thread, "multiprocessing.pool": multiprocessing.pool}
    for name, watch in watched.import_hooks().items():
        watch(modules[name])
    yield fake
    watched.close()


def task_result(value: int, label: str = "", function: int = 0) -> tuple[str, int]:
    """Return the name of the task's thread, and a value."""
    time.sleep(0.02 * (value % 3))  # the later ones are done sooner
    return pool_tasks.thread_name(), value + len(label) + function


def test_tasks_of_an_executor_are_named_by_submission_order(recorder: Any) -> None:
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(task_result, 2 - number, label="x", function=1) for number in range(3)]
        results = [future.result() for future in futures]
        assert results == [(f"task {number} of ThreadPoolExecutor", 4 - number) for number in range(3)]
        assert [name for name, _ in pool.map(task_result, range(2))] == [
            f"task {n} of ThreadPoolExecutor" for n in (3, 4)
        ]
        recorder.eager.on_step_end()
        assert pool.submit(task_result, 0).result()[0] == "task 0 of ThreadPoolExecutor"
    assert pool_tasks.thread_name() == ""


def test_tasks_of_a_thread_pool_are_named_by_submission_order(recorder: Any) -> None:
    with multiprocessing.pool.ThreadPool(3) as pool:
        calls = [pool.map(task_result, [2, 1]), list(pool.imap(task_result, iter([2, 1]), 2)),
                 sorted(pool.imap_unordered(task_result, [2, 1])), pool.starmap(task_result, [(2, "x", 1), (1, "x")]),
                 [pool.apply(task_result, (2,), {"label": "x"}), pool.apply_async(task_result, [1]).get()]]  # fmt: skip
    for call, results in enumerate(calls[:4]):
        assert [name for name, _ in results] == [f"task {call}.{number} of ThreadPool" for number in range(2)]
    assert [[value for _, value in call_results] for call_results in calls] == [
        [2, 1],
        [2, 1],
        [2, 1],
        [4, 2],
        [3, 1],
    ]
    assert [name for name, _ in calls[4]] == ["task 4 of ThreadPool", "task 5 of ThreadPool"]


def test_a_task_submitted_by_a_task_is_named_after_it(recorder: Any) -> None:
    def outer(_: int) -> list[Any]:
        inner = [pool.submit(task_result, 0).result()[0] for _ in range(2)]
        return [*inner, recorder.eager.next_occurrence("op"), recorder.eager.next_occurrence("op")]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for number, results in enumerate(pool.map(outer, range(2))):
            inside = [f"task {n} of ThreadPoolExecutor in task {number} of ThreadPoolExecutor" for n in range(2)]
            assert results == [*inside, 0, 1]
    assert recorder.eager.next_occurrence("op") == 0


def test_processes_and_unrecorded_pools_stay_unchanged(recorder: Any) -> None:
    with multiprocessing.get_context("fork").Pool(1) as processes:
        assert processes.map(abs, [-1, -2]) == [1, 2]
    recorder.active = False
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert pool.submit(pool_tasks.current_task).result() is None
        with pytest.raises(TypeError):
            pool.submit()  # type: ignore[call-arg]
