"""Map over processes on all cores."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

from tfdet_common.parent_death import set_parent_death_signal

Item = TypeVar("Item")
Result = TypeVar("Result")

MIN_BYTES_FOR_PROCESSES: Final = 8 << 20


def should_read_in_processes(paths: Iterable[Path]) -> bool:
    """Return whether these files of records are so large that several processes read them faster than one."""
    return sum(path.stat().st_size for path in paths) >= MIN_BYTES_FOR_PROCESSES


_worker_state: list[Callable[[Any], Any]] = []  # in a worker process: the function, which is sent once


def parallel_map(work: Callable[[Item], Result], items: Iterable[Item], *, use_processes: bool) -> Iterator[Result]:
    """Yield work(item) for each item, in order.

    use_processes: in worker processes instead of this one.  They end with this one, even if it is killed: they have
    inherited the locks of its files.
    """
    if not use_processes:
        yield from map(work, items)
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(None, context, _init_worker, (os.getpid(), work)) as pool:
        yield from pool.map(_in_process, items)


def _init_worker(parent: int, work: Callable[[Any], Any]) -> None:
    set_parent_death_signal(parent)
    gc.disable()  # records form no reference cycles, and searching for cycles takes long
    _worker_state.append(work)


def _in_process(item: Any) -> Any:
    return _worker_state[0](item)
