"""Versions as people write them."""

import re


def numbers(version):
    """(525, 60, 13) of "525.60.13": in this form versions compare."""
    return tuple(int(part) for part in re.findall(r"\d+", version))
