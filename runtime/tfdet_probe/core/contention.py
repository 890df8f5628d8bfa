"""Contention: load on the device beside a case, under which races show sooner."""

import contextlib
import threading

from ..devices.base import ContentionError


@contextlib.contextmanager
def keep_busy(device):
    """Keep the device busy until the block ends.

    device.contention_work() gives a description and a list of functions: each is called in a thread of its own, and
    returns a function that the thread calls again and again.

    Yields:
        A description of the load, for the record; None if the device cannot be kept busy.
    """
    stop = threading.Event()
    try:
        description, makers = device.contention_work()
    except ContentionError:
        yield None
        return
    threads = [threading.Thread(target=_work_until, args=(stop, make_step)) for make_step in makers]
    for thread in threads:
        thread.daemon = True
        thread.start()
    try:
        yield description
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _work_until(stop, make_step):
    step = make_step()
    while not stop.is_set():
        step()
