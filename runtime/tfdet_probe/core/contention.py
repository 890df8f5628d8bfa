"""Keep the device busy while a case repeats: what depends on who comes first shows itself sooner."""

import contextlib
import threading

from ..devices.base import Busy


@contextlib.contextmanager
def on(device):
    """Busy until the block ends.  Gives what kept it so, for the record; None if nothing could."""
    stop = threading.Event()
    try:
        what, works = device.work()
    except Busy:
        yield None
        return
    threads = [threading.Thread(target=_until, args=(stop, work)) for work in works]
    for thread in threads:
        thread.daemon = True
        thread.start()
    try:
        yield what
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _until(stop, work):
    step = work()
    while not stop.is_set():
        step()
