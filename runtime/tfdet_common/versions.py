"""Compare version strings."""

import re


def numbers(version):
    """A version as a tuple of ints, which compares by order: (525, 60, 13) for "525.60.13"."""
    return tuple(int(part) for part in re.findall(r"\d+", version))
