"""Names that look alike: by the skeletons of Unicode Technical Standard 39, https://www.unicode.org/reports/tr39/."""

from __future__ import annotations

import unicodedata
from functools import cache


def looks(name: str) -> tuple[str, str]:
    """Skeletons of what is left of a name where width and what nobody sees are left out: with and without its case.

    Names of which either is the same look alike.
    """
    plain = _seen(name)
    return _skeleton(plain), _skeleton(_seen(plain.casefold()))


def _seen(name: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFKC", name) if char.isprintable())


def _skeleton(text: str) -> str:
    shown = "".join(_prototype(char) for char in unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFD", shown)


@cache
def _prototype(char: str) -> str:
    """Of all that look like this one the one that stands for them.  The library lists, for it, all others; for each of
    the others, it alone.
    """
    from confusable_homoglyphs.confusables import confusables_data  # it reads a megabyte

    alike = [other["c"] for other in confusables_data.get(char, ())]
    if len(alike) != 1:
        return char
    (other,) = alike
    both = len(other) == 1 and len(confusables_data.get(other, ())) == 1
    return str(min(char, other) if both else other)
