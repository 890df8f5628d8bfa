"""The addresses of objects: id(), and the order of a set of objects.

Pinned: from outside, without randomization of the address space. This holds only together with all other fine pins,
because an address depends on all earlier allocations. At a line: id() returns numbers in the order of its first calls,
and a set of objects is sorted by their attributes. Cannot be pinned: where the system refuses personality(). Example:
``sorted(layers, key=id)``.
"""

from .base import Kind

NO_RANDOMIZATION = 0x0040000  # ADDR_NO_RANDOMIZE of personality(2)


class Addresses(Kind):
    name, coarseness = "addresses", 2
    label = "the addresses of objects (id(), a text or a hash() that has one, a set of objects)"
    required_pins = ("hash-seed", "files", "listing", "mtime", "pid", "clock", "random", "memory")

    def open(self):
        try:
            with open("/proc/self/personality") as flags:
                # At no line, for the whole process, without a value, and whether it is pinned.
                self.note("-", "process", None, bool(int(flags.read(), 16) & NO_RANDOMIZATION))
        except (OSError, ValueError):  # not readable: it is unknown whether the pin holds
            pass
