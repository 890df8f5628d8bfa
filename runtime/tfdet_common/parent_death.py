"""End a process when the process that started it ends, even by SIGKILL, which runs no handler."""

import ctypes
import os
import signal
import threading
import time

GRACE_SECONDS = 5.0  # between SIGTERM and SIGKILL: to end the children and print the table
_PR_SET_PDEATHSIG = 1


def exit_with_parent(parent):
    """Exit when the process `parent` ends: by the kernel's signal, and by the end of standard input.

    Args:
        parent: id of the process that started this one and holds the other end of its standard input.
    """
    interrupt_on_sigterm()
    threading.Thread(target=_exit_at_end_of_input, name="exit-with-parent", daemon=True).start()
    set_parent_death_signal(parent, signal.SIGTERM)


def interrupt_on_sigterm():
    """Raise KeyboardInterrupt on SIGTERM, so that SIGTERM ends the cases as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def set_parent_death_signal(parent, number=signal.SIGKILL):
    """Have the kernel send this process a signal when its parent ends (prctl(2): PR_SET_PDEATHSIG).

    Args:
        parent: id of the parent; if it has ended already, the signal is sent at once.
        number: the signal.
    """
    prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def prctl(option, value):
    """Call prctl(2); do nothing where the system has none."""
    try:
        ctypes.CDLL(None).prctl(option, value)
    except (OSError, AttributeError):  # not Linux: the closing pipe ends the process
        pass


def _exit_at_end_of_input():
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)  # it hangs in code that handles no signal
