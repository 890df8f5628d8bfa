"""Work that may end its process runs in a child, with little time, little memory and no output."""

import os
import resource
import signal

DIED = 2  # the child's exit status after an exception
MOST_MEMORY = 3 << 30  # bytes of address space more than there are: more than any of these may need


def address_space():
    """Bytes that this process has already: the device may have reserved its addresses before the fork."""
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[0]) * resource.getpagesize()


def in_child(work, seconds=60):
    """What os.waitpid says of a child that ends with the exit status work()."""
    child = os.fork()
    if child == 0:
        code = DIED
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            os.dup2(2, 1)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if "VGPU_SANITIZED" not in os.environ:  # a sanitizer reserves terabytes
                limit = address_space() + MOST_MEMORY
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            signal.alarm(seconds)
            code = work()
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]
