"""No process outlives who started it: one that is killed by force tells nobody, and ends nothing itself."""

import ctypes
import os
import signal
import threading
import time

PATIENCE = 5.0  # seconds in which children are ended and the table printed
_PR_SET_PDEATHSIG = 1


def hold(parent):
    """End with the process `parent`, which started this one and holds the other end of its standard input."""
    interrupt_on_sigterm()
    threading.Thread(target=_wait_for_the_end, name="lifeline", daemon=True).start()
    die_with(parent, signal.SIGTERM)


def interrupt_on_sigterm():
    """A SIGTERM ends the cases, too, as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def die_with(parent, number=signal.SIGKILL):
    """Have the kernel send this signal when `parent`, whose child we are, is gone; at once if it is gone already."""
    prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def prctl(option, value):
    try:
        ctypes.CDLL(None).prctl(option, value)
    except (OSError, AttributeError):  # not Linux: a pipe that closes tells
        pass


def _wait_for_the_end():
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE)
    os.kill(os.getpid(), signal.SIGKILL)  # it hangs where no signal is heeded
