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

# The marks that tables.claim_cell puts behind a claim, by what backs it.  shipped: order-dependent kernels are in the
# binaries, and it is unknown whether the op reaches them; replaced: tfdeterminism replaces the op, and no run shows it.
_MARKS = {"m": "measured", "e": "emulated", "a": "audited", "s": "shipped", "p": "replaced", "d": "documented"}
_MAX_CHANGES = 40  # changes on the page; the feed has more


def page(facts: SiteFacts, changes: Sequence[VerdictChange]) -> Page:
    columns = tables.columns(facts.status)
    rows = [
        {"source": key, "title": facts.matrix.sources[key].title,
         "cells": [tables.claim_cell(facts.status, key, column) for column in columns]}
        for key in facts.sources if facts.matrix.sources[key].group == "gpu-confirmed"  # the README's table "Confirmed"
    ]  # fmt: skip
    verdicts = Counter(str(cell.inferred.verdict) for cell in facts.cells if cell.was_run)
    data: dict[str, Any] = {
        "columns": [column.title for column in columns],
        "rows": rows,
        "cells": len(facts.cells),
        "sources": len(facts.sources),
        "environments": len(facts.matrix.environments),
        "audits": len(facts.status.audits),
        "seen": {verdict: verdicts[verdict] for verdict in VERDICTS if verdicts[verdict]},
        "changes": [change.data() for change in changes[:_MAX_CHANGES]],
    }
    marked_rows = [[markup_claim(text, set(facts.matrix.solutions)) for text in row["cells"]] for row in rows]
    return Page(
        path="index",
        kind="index",
        title="Determinism in deep learning, proven",
        description=(
            "Which op of TensorFlow or PyTorch gives another result each time it runs, on which version and device, "
            "how we know, and what switches it off."
        ),
        data=data,
        template_data={"shown": marked_rows},
        scripts=("static/search-data.js", "static/search.js"),
    )


def markup_claim(text: str, solutions: set[str]) -> Markup:
    """Return a cell of the README's table as HTML: its solutions as links, its marks as colored letters."""
    result = html.escape(text)
    result = re.sub(r"&lt;sup&gt;(.*?)&lt;/sup&gt;", _mark, result)
    result = re.sub(
        r"(?<![\w-])(" + "|".join(sorted(map(re.escape, solutions), key=len, reverse=True)) + r")(?![\w-])",
        r'<a href="solutions/\1.html">\1</a>',
        result,
    )
    return Markup(result.replace("; ", "<br>"))


def _mark(match: re.Match[str]) -> str:
    backing = _MARKS.get(match[1][:1], "contradicted")
    return f'<sup class="mark {backing}" title="{backing}">{match[1]}</sup>'


def _search_title(facts: SiteFacts, source: str) -> str:
    """Return a source's title; for a framework's op, with the framework's name."""
    entry = facts.matrix.sources[source]
    title = entry.title.replace("`", "")
    return f"{facts.matrix.frameworks[entry.framework].package}: {title}" if entry.group == "op" else title


def search_data(facts: SiteFacts, documents: list[docs.Document]) -> dict[str, Any]:
    """Return the index of the search field."""
    environments = list(facts.matrix.environments)
    numbers = {key: number for number, key in enumerate(environments)}
    environments_of: dict[str, list[int]] = {}
    for environment, source in facts.cells_by_page:
        environments_of.setdefault(source, []).append(numbers[environment])
    return {
        "documents": docs.search_data(documents),
        "environments": environments,
        "solutions": [[key, facts.matrix.solutions[key].name.replace("`", "")] for key in facts.solutions],
        "sources": [
            [key, _search_title(facts, key),
             " ".join([facts.matrix.sources[key].api, *facts.matrix.sources[key].raw_ops]),
             sorted(environments_of.get(key, []))]
            for key in facts.sources
        ],
    }  # fmt: skip
