"""Map over processes on all cores."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

ENOUGH_BYTES: Final = 8 << 20


def pays_to_read(paths: Iterable[Path]) -> bool:
    """Return whether reading these files of records takes longer than starting processes."""
    return sum(path.stat().st_size for path in paths) >= ENOUGH_BYTES


_worker_state: list[Callable[[Any], Any]] = []  # in a worker process: the function, which is sent once


def parallel_map(work: Callable[[Item], Result], items: Iterable[Item], *, enough: bool) -> Iterator[Result]:
    """Yield work(item) for each item, in order. enough: whether there is enough work to start processes for it."""
    if not enough:
        yield from map(work, items)
        return
    with ProcessPoolExecutor(initializer=_init_worker, initargs=(work,)) as pool:
        yield from pool.map(_in_process, items)


def _init_worker(work: Callable[[Any], Any]) -> None:
    gc.disable()  # records form no reference cycles, and searching for cycles takes long
    _worker_state.append(work)


def _in_process(item: Any) -> Any:
    return _worker_state[0](item)
