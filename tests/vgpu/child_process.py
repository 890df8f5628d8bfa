"""Forked children for work that may crash: with a limit of time and memory, and without output."""

import os
import resource
import signal

DIED = 2  # the child's exit status after an exception
MAX_NEW_MEMORY = 3 << 30  # bytes of address space that a child may add to those of its parent


def address_space():
    """Return the size in bytes of the address space in use: the device may have reserved addresses before the fork."""
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[0]) * resource.getpagesize()


def in_child(work, seconds=60):
    """Run work() in a child that exits with its result; return the wait status of os.waitpid."""
    child = os.fork()
    if child == 0:
        code = DIED
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            os.dup2(2, 1)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if "VGPU_SANITIZED" not in os.environ:  # a sanitizer reserves terabytes
                limit = address_space() + MAX_NEW_MEMORY
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            signal.alarm(seconds)
            code = work()
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]
