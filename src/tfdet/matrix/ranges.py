"""Version ranges of claims: `stock` speaks of TensorFlow minors, `ngc` of image versions."""

from __future__ import annotations

import re
from functools import cache


def validate_range(text: str) -> str:
    """The range itself; ValueError if it is not one."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # a list of environments holds no range

    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        raise ValueError(f"{text!r} is not a version range such as '>=1.14,<=2.0'") from None
    return text


def validate_version(text: str) -> str:
    """The version itself; ValueError if ranges could not be asked for it."""
    if not re.fullmatch(r"\d+(\.\d+)*", text):
        raise ValueError(f"{text!r} is not a version such as '2.4' or '20.09'")
    return text


@cache
def contains(text: str | None, version: str | None) -> bool:
    """Does the range hold this version?  No range holds none; an unknown version is in no range."""
    from packaging.specifiers import SpecifierSet

    return text is not None and version is not None and version in SpecifierSet(text)


@cache
def leading_version(text: str) -> str | None:
    """The version that a fact begins with ("2.15.0 (public README)"), None if it begins with none."""
    found = re.match(r"\d+(\.\d+)*", text)
    return found.group() if found else None
