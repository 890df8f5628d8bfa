"""Work in several processes keeps its order, and no worker outlives the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tfdet.base.parallel import parallel_map

# Starts workers that wait for an hour, and prints their process ids.
DRIVER = """
import os, sys, time
from tfdet.base.parallel import parallel_map

def wait(_):
    print(os.getpid(), flush=True)
    time.sleep(3600)

list(parallel_map(wait, range(2), use_processes=True))
"""


@pytest.mark.parametrize("use_processes", [False, True])
def test_the_results_are_in_order(use_processes: bool) -> None:
    assert list(parallel_map(str, range(40), use_processes=use_processes)) == [str(k) for k in range(40)]


def test_workers_end_with_a_process_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        worker = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.wait()
        deadline = time.monotonic() + 30
        while is_alive(worker) and time.monotonic() < deadline:
            time.sleep(0.05)
        if is_there := is_alive(worker):
            os.kill(worker, signal.SIGKILL)
        assert not is_there


def is_alive(process: int) -> bool:
    """Return whether a process is there that has not ended; one without a parent may stay as a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
