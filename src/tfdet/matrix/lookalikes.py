"""Detection of names that look alike, by the skeletons of Unicode Technical Standard 39.

https://www.unicode.org/reports/tr39/
"""

from __future__ import annotations

import unicodedata
from functools import cache

# Invisible characters: Default_Ignorable_Code_Point of Unicode, and two symbols that are blank.
_INVISIBLE = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F)),
    *((0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D159, 0x1D159)),
    *((0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
_LEFT_TO_RIGHT = "\u200e"
_BIDI_CONTROLS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def confusable_skeletons(name: str) -> tuple[str, str, str]:
    """Return three skeletons of a name's visible characters; two names look alike if any of them is equal.

    Blanks are left out, because some characters that are no blanks are shown as one, and others as nothing.
    The first keeps the case. The others fold it before and after taking the skeleton, because letters may look alike
    in one case only.
    """
    cased = _skeleton(name)
    return cased, _skeleton(unicodedata.normalize("NFKC", name).casefold()), _skeleton(cased.casefold())


def is_bidi_control(char: str) -> bool:
    """Return whether the character changes the order in which others are shown."""
    return unicodedata.bidirectional(char) in _BIDI_CONTROLS


def visible_characters(text: str) -> str:
    """Return the characters that are shown as something; blanks are left out."""
    return "".join(char for char in text if char.isprintable() and not char.isspace() and not _is_invisible(char))


def _is_invisible(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in _INVISIBLE)


def _skeleton(text: str) -> str:
    """Replace lookalikes, before and after the compatibility decomposition: it hides some, and shows others."""
    for form in ("NFC", "NFKD"):
        visible = visible_characters(unicodedata.normalize(form, text))
        text = unicodedata.normalize("NFD", "".join(map(_prototype, visible)))
    return visible_characters(text)


@cache
def _lookalikes() -> dict[str, list[str]]:
    """Return the library's data without the marks that it sets around text that is written from right to left."""
    from confusable_homoglyphs.confusables import confusables_data  # reads a megabyte

    return {
        char.strip(_LEFT_TO_RIGHT): [other["c"].strip(_LEFT_TO_RIGHT) for other in others]
        for char, others in confusables_data.items()
    }


@cache
def _prototype(char: str) -> str:
    """Return the character that represents all those that look like this one.

    The library lists all others for the representative, and only the representative for each of the others.
    """
    lookalikes = _lookalikes().get(char, ())
    if len(lookalikes) != 1:
        return char
    (other,) = lookalikes
    is_pair = len(other) == 1 and len(_lookalikes().get(other, ())) == 1
    return min(char, other) if is_pair else other
