"""Texts of the site: the CSS class and meaning of each verdict, and HTML for code and citations in texts."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from tfdet.base.sanitize import escape_hidden
from tfdet.publish.verdict_symbols import SYMBOLS
from tfdet.verdicts.infer import Verdict


class VerdictStyle(NamedTuple):
    """A verdict on a page.  kind: its CSS class, which has a color."""

    kind: str
    symbol: str
    meaning: str


_MEANINGS: dict[Verdict, tuple[str, str]] = {
    Verdict.NONDETERMINISTIC: ("bad", "at least one run under this solution gave other bytes"),
    Verdict.SCHEDULE_INDEPENDENT: ("proved", "proved on the virtual GPU: no order of execution gives other bytes, for "
                                             "the inputs of these cases; this needs no control"),
    Verdict.DETERMINISTIC: ("good", "every run gave the same bytes, and a control run of the same case differed on "
                                    "that environment and device"),
    Verdict.TOO_FEW: ("few", "equal so far, but by fewer than 20 runs of cases whose control differed"),
    Verdict.NOT_SHOWN: ("quiet", "every run gave the same bytes, but the control never differed either: this proves "
                                 "nothing about the solution"),
    Verdict.RAISES: ("raises", "the framework refuses with its determinism error"),
    Verdict.UNSUPPORTED: ("none", "no such op there, or no kernel for that device"),
    Verdict.FAILED: ("failed", "the case crashed, hung or ran out of memory"),
    Verdict.STALE: ("stale", "only records of an older form of the case exist"),
    Verdict.BLANK: ("blank", "never run there; blank is never a “no”"),
}  # fmt: skip
VERDICTS: Final = {
    str(verdict) or "never run": VerdictStyle(kind, SYMBOLS[verdict] or "·", meaning)
    for verdict, (kind, meaning) in _MEANINGS.items()
}
BACKINGS: Final = {
    "measured": "ran on the device itself",
    "emulated": "the shipped GPU code ran on the virtual GPU, under schedules that CUDA permits; it says nothing of "
    "vendor libraries, timing or the assembler",
    "audited": "read from the shipped binaries, not run",
    "documented": "documents say so; this project has not run it",
    "": "nothing backs it",
}
# {claimed outcome: its CSS class}; no-solution: documents say that no solution is available.
_CLAIM_KINDS = {
    "deterministic": "good",
    "nondeterministic": "bad",
    "no-solution": "bad",
    "raises": "raises",
}


def css_class(verdict: str, claimed_outcome: str | None, audit_kind: str | None = None) -> str:
    """Return the CSS classes of a cell by its verdict, else its audit (the kind of finding), else its claim."""
    if verdict:
        return VERDICTS[verdict].kind
    if audit_kind:
        return f"unmeasured {audit_kind}"
    return f"unmeasured {_CLAIM_KINDS[claimed_outcome]}" if claimed_outcome else "blank"


def strip_code(text: str) -> str:
    """Return a title without backticks."""
    return escape_hidden(text).replace("`", "")


def render_code(text: str) -> Markup:
    """Return a text as HTML, with code in backticks and *stressed* words as elements."""
    parts = escape_hidden(text).split("`")
    if len(parts) % 2 == 0:
        return Markup(escape("`".join(parts)))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if n % 2 else _render_emphasis(part) for n, part in enumerate(parts)
    )


def _render_emphasis(text: str) -> Markup:
    """Return a text as HTML, with *stressed* words, which tensorflow-determinism's documents have, in <em>."""
    return Markup(re.sub(r"(?<![\w*])\*(\w[^*\n]*)\*(?![\w*])", r"<em>\1</em>", str(escape(text))))


_ADDRESS = re.compile(r"https://[^\s<>\"'`]+[^\s<>\"'`.,;:)\]]")


def link_citations(text: str) -> Markup:
    """Return a text as HTML, with its URLs as links."""
    result, position = Markup(""), 0
    escaped = escape_hidden(text)
    for match in _ADDRESS.finditer(escaped):
        link = Markup('<a rel="nofollow noreferrer" href="{}">{}</a>').format(match.group(), _short(match.group()))
        result += render_code(escaped[position : match.start()]) + link
        position = match.end()
    return result + render_code(escaped[position:])


def _short(address: str) -> str:
    """Return the text of a link: tensorflow/tensorflow#31465 for an issue or pull request, else without https."""
    match = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)(#.*)?", address)
    return f"{match[1]}#{match[2]}" if match else address.removeprefix("https://")
