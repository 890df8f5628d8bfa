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
    """Whether it takes longer to read these files of records than to start processes."""
    return sum(path.stat().st_size for path in paths) >= ENOUGH_BYTES


_worker_state: list[Callable[[Any], Any]] = []  # of a process of the pool: given once, not with each item


def parallel_map(work: Callable[[Item], Result], items: Iterable[Item], *, enough: bool) -> Iterator[Result]:
    """Yield work(item) for each, in their order; by processes if there is `enough` to do to pay for their start."""
    if not enough:
        yield from map(work, items)
        return
    with ProcessPoolExecutor(initializer=_init_worker, initargs=(work,)) as pool:
        yield from pool.map(_in_process, items)


def _init_worker(work: Callable[[Any], Any]) -> None:
    gc.disable()  # no record makes a cycle, and to look for one takes long
    _worker_state.append(work)


def _in_process(item: Any) -> Any:
    return _worker_state[0](item)
