"""Send what is ready, look, send again what was lost: until nothing is left.

All that is known lies in the fleet's folder and in the cluster's queue: who watches may be killed at any moment, and
another goes on.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable

from filelock import FileLock, Timeout

from tfdet.base import console
from tfdet.base.errors import RunFailedError, UsageError
from tfdet.fleet.clusters import MOST, Cluster, Want, minutes
from tfdet.fleet.folder import Folder
from tfdet.fleet.progress import Progress, look


def watch(folder: Folder, cluster: Cluster, tell: Callable[[Progress], None], every: float | None = None) -> Progress:
    """Until every task is done or given up, or the fleet cancelled.  every: seconds between two looks.

    UsageError where another one watches: each would send what the other has sent.
    """
    lock = FileLock(folder.path / "watched.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UsageError("another tfdet watches this fleet", "Look at it: tfdet fleet status.") from None
    try:
        return _watch(folder, cluster, tell, every or cluster.pause)
    except KeyboardInterrupt:
        cluster.leave()
        raise
    finally:
        lock.release()


def _watch(folder: Folder, cluster: Cluster, tell: Callable[[Progress], None], pause: float) -> Progress:
    sent = bool(folder.rounds())
    while True:
        cluster.tidy()
        flying = cluster.flying()
        progress = look(folder, flying)
        tell(progress)
        if folder.cancelled:
            cluster.cancel()  # what was being sent meanwhile
            return progress
        if progress.complete:
            return progress
        if flying is not None and progress.ready:
            try:
                _send(folder, cluster, progress, cluster.room(flying))
                sent = True
            except RunFailedError as error:
                if not sent:  # nothing was ever taken: that will not pass by itself
                    raise
                console.print_note(f"{error.cause}; trying again")
        time.sleep(pause)


def _send(folder: Folder, cluster: Cluster, progress: Progress, room: int) -> None:
    for want, some in _alike(progress, progress.ready[: max(0, room)]).items():
        for start in range(0, len(some), MOST):
            if folder.cancelled:
                return
            made = folder.add_round(some[start : start + MOST])
            try:
                folder.was_sent(made, cluster.send(made, want))
            except RunFailedError:
                if not want.not_on:
                    raise
                # No other machine fits them: better again where they failed than never.
                folder.was_sent(made, cluster.send(made, Want(want.minutes)))


def _alike(progress: Progress, ready: list[int]) -> dict[Want, list[int]]:
    """What an array asks for, all of its tasks ask for."""
    found: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for task in ready:
        found[progress.failed_on.get(task, ())].append(task)
    return {Want(max(_minutes(progress, task) for task in some), not_on): some for not_on, some in found.items()}


def _minutes(progress: Progress, task: int) -> int:
    return minutes(progress.tasks[task].seconds, progress.attempts.get(task, 0))
