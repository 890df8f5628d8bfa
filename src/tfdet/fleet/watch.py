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
from tfdet.fleet.clusters import MAX_ARRAY_SIZE, Cluster, ResourceRequest, requested_minutes
from tfdet.fleet.folder import FleetFolder
from tfdet.fleet.progress import Progress, compute_progress


def watch(
    folder: FleetFolder, cluster: Cluster, tell: Callable[[Progress], None], every: float | None = None
) -> Progress:
    """Until every task is done or given up, or the fleet cancelled.  every: seconds between two looks.

    UsageError where another one watches: each would send what the other has sent.
    """
    lock = FileLock(folder.path / "watched.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UsageError("another tfdet already watches this fleet", "See tfdet fleet status.") from None
    try:
        return _watch(folder, cluster, tell, every or cluster.poll_seconds)
    except KeyboardInterrupt:
        cluster.detach()
        raise
    finally:
        lock.release()


def _watch(folder: FleetFolder, cluster: Cluster, tell: Callable[[Progress], None], pause: float) -> Progress:
    sent = bool(folder.submissions())
    while True:
        cluster.cancel_orphans()
        flying = cluster.jobs_in_flight()
        progress = compute_progress(folder, flying)
        tell(progress)
        if folder.cancelled:
            cluster.cancel()  # what was being sent meanwhile
            return progress
        if progress.complete:
            return progress
        if flying is not None and progress.ready:
            try:
                _submit_ready(folder, cluster, progress, cluster.free_slots(flying))
                sent = True
            except RunFailedError as error:
                if not sent:  # nothing was ever taken: that will not pass by itself
                    raise
                console.print_note(f"{error.cause}; trying again")
        time.sleep(pause)


def _submit_ready(folder: FleetFolder, cluster: Cluster, progress: Progress, room: int) -> None:
    for want, some in _same_request(progress, progress.ready[: max(0, room)]).items():
        for start in range(0, len(some), MAX_ARRAY_SIZE):
            if folder.cancelled:
                return
            made = folder.add_submission(some[start : start + MAX_ARRAY_SIZE])
            try:
                folder.record_submission(made, cluster.submit(made, want))
            except RunFailedError:
                if not want.excluded_nodes:
                    raise
                # No other machine fits them: better again where they failed than never.
                folder.record_submission(made, cluster.submit(made, ResourceRequest(want.minutes)))


def _same_request(progress: Progress, ready: list[int]) -> dict[ResourceRequest, list[int]]:
    """What an array asks for, all of its tasks ask for."""
    found: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for task in ready:
        found[progress.failed_on.get(task, ())].append(task)
    return {
        ResourceRequest(max(_time_limit(progress, task) for task in some), not_on): some
        for not_on, some in found.items()
    }


def _time_limit(progress: Progress, task: int) -> int:
    return requested_minutes(progress.tasks[task].seconds, progress.attempts.get(task, 0))
