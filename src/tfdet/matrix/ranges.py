"""Version ranges of claims: `stock` ranges over minor versions of the framework, `ngc` over NVIDIA's image versions."""

from __future__ import annotations

import re
from functools import cache


def validate_range(text: str) -> str:
    """Return the range; ValueError if it is not a PEP 440 specifier set."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # not needed to list environments

    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        raise ValueError(f"{text!r} is not a version range such as '>=1.14,<=2.0'") from None
    return text


def validate_version(text: str) -> str:
    """Return the version; ValueError if it is not numbers separated by dots."""
    if not re.fullmatch(r"\d+(\.\d+)*", text):
        raise ValueError(f"{text!r} is not a version such as '2.4' or '20.09'")
    return text


@cache
def contains(text: str | None, version: str | None) -> bool:
    """Return whether the version is in the range; False if either is None."""
    from packaging.specifiers import SpecifierSet

    return text is not None and version is not None and version in SpecifierSet(text)


@cache
def leading_version(text: str) -> str | None:
    """Return the version at the start of a cited text such as "2.15.0 (public README)", or None."""
    match = re.match(r"\d+(\.\d+)*", text)
    return match.group() if match else None
