"""The comparison of version strings."""

import re


def numbers(version):
    """Return a version as a tuple of ints, which compares by order: (525, 60, 13) for "525.60.13"."""
    return tuple(int(number) for number in re.findall(r"\d+", version))
