"""How the site says things: verdicts as classes and sentences, code and citations in running text."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from tfdet.base.sanitize import escape_hidden
from tfdet.publish.verdict_symbols import SYMBOLS
from tfdet.verdicts.infer import Verdict


class VerdictStyle(NamedTuple):
    """A verdict on a page.  kind: its class in the style sheet, which has a colour for it."""

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
    "closed libraries, timing or the assembler",
    "audited": "read from the shipped binaries, not run",
    "documented": "documents say so; this project has not run it",
    "": "nothing backs it",
}
_SAYS = {
    "deterministic": "good",
    "nondeterministic": "bad",
    "no-solution": "bad",
    "raises": "raises",
}


def kind_of(verdict: str, says: str | None, audited: str | None = None) -> str:
    """The class of a cell: what was seen, else what the binary holds, else what documents say."""
    if verdict:
        return VERDICTS[verdict].kind
    if audited:
        return f"told {audited}"
    return f"told {_SAYS[says]}" if says else "blank"


def strip_code(text: str) -> str:
    """A title without marks of code."""
    return escape_hidden(text).replace("`", "")


def render_code(text: str) -> Markup:
    """`so` in backticks is code."""
    parts = escape_hidden(text).split("`")
    if len(parts) % 2 == 0:
        return Markup(escape("`".join(parts)))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if n % 2 else _stressed(part) for n, part in enumerate(parts)
    )


def _stressed(text: str) -> Markup:
    """*So*, as the seed documents stress a word."""
    return Markup(re.sub(r"(?<![\w*])\*(\w[^*\n]*)\*(?![\w*])", r"<em>\1</em>", str(escape(text))))


_ADDRESS = re.compile(r"https://[^\s<>\"'`]+[^\s<>\"'`.,;:)\]]")


def link_citations(text: str) -> Markup:
    """Text whose addresses are links."""
    done, at = Markup(""), 0
    shown = escape_hidden(text)
    for found in _ADDRESS.finditer(shown):
        done += render_code(shown[at : found.start()]) + Markup('<a rel="nofollow noreferrer" href="{}">{}</a>').format(
            found.group(), _short(found.group())
        )
        at = found.end()
    return done + render_code(shown[at:])


def _short(address: str) -> str:
    """github.com/tensorflow/tensorflow/pull/31465 as people say it."""
    found = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)(#.*)?", address)
    return f"{found[1]}#{found[2]}" if found else address.removeprefix("https://")
