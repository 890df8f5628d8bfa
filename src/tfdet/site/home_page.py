"""The home page: purpose, search, the README's table, and recent changes of verdicts."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from tfdet.publish import tables
from tfdet.site import docs
from tfdet.site.history import VerdictChange
from tfdet.site.page import Page
from tfdet.site.site_facts import SiteFacts
from tfdet.site.wording import VERDICTS

_MARKS = {"m": "measured", "e": "emulated", "a": "audited", "s": "shipped", "p": "replaced", "d": "documented"}
_NEWEST = 40  # changes that the page shows; the feed has more


def page(facts: SiteFacts, changes: Sequence[VerdictChange]) -> Page:
    columns = tables.columns(facts.status)
    rows = [
        {"source": key, "title": facts.matrix.sources[key].title,
         "cells": [tables.claim_cell(facts.status, key, column) for column in columns]}
        for key in facts.sources if facts.matrix.sources[key].group == "gpu-confirmed"
    ]  # fmt: skip
    verdicts = Counter(str(cell.cell.verdict) for cell in facts.cells if cell.was_run)
    data: dict[str, Any] = {
        "columns": [column.title for column in columns],
        "rows": rows,
        "cells": len(facts.cells),
        "sources": len(facts.sources),
        "environments": len(facts.matrix.environments),
        "audits": len(facts.status.audits),
        "seen": {verdict: verdicts[verdict] for verdict in VERDICTS if verdicts[verdict]},
        "changes": [change.data() for change in changes[:_NEWEST]],
    }
    shown = [[coloured(text, set(facts.matrix.solutions)) for text in row["cells"]] for row in rows]
    return Page(
        "index",
        "index",
        "Determinism in deep learning, proven",
        "Which op of TensorFlow or PyTorch gives another result each time it runs, on which version and device, how we "
        "know, and what switches it off.",
        data,
        {"shown": shown},
        ("static/search-data.js", "static/search.js"),
    )


def coloured(text: str, solutions: set[str]) -> Markup:
    """A cell of the README's table: its solutions as links, its marks as coloured letters."""
    done = html.escape(text)
    done = re.sub(r"&lt;sup&gt;(.*?)&lt;/sup&gt;", _mark, done)
    done = re.sub(
        r"(?<![\w-])(" + "|".join(sorted(map(re.escape, solutions), key=len, reverse=True)) + r")(?![\w-])",
        r'<a href="solutions/\1.html">\1</a>',
        done,
    )
    return Markup(done.replace("; ", "<br>"))


def _mark(found: re.Match[str]) -> str:
    word = _MARKS.get(found[1][:1], "contradicted")
    return f'<sup class="mark {word}" title="{word}">{found[1]}</sup>'


def _titled(facts: SiteFacts, source: str) -> str:
    """A source's title; for an op of a framework's samples, with the framework's name."""
    entry = facts.matrix.sources[source]
    title = entry.title.replace("`", "")
    return f"{facts.matrix.frameworks[entry.framework].package}: {title}" if entry.group == "op" else title


def search_data(facts: SiteFacts, documents: list[docs.Document]) -> dict[str, Any]:
    """The index of the search field."""
    environments = list(facts.matrix.environments)
    at = {key: number for number, key in enumerate(environments)}
    pages: dict[str, list[int]] = {}
    for environment, source in facts.by_page:
        pages.setdefault(source, []).append(at[environment])
    return {
        "documents": docs.search_data(documents),
        "environments": environments,
        "solutions": [[key, facts.matrix.solutions[key].name.replace("`", "")] for key in facts.solutions],
        "sources": [
            [key, _titled(facts, key),
             " ".join([facts.matrix.sources[key].api, *facts.matrix.sources[key].raw_ops]), sorted(pages.get(key, []))]
            for key in facts.sources
        ],
    }  # fmt: skip
