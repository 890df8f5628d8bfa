"""Where pages of cells are, below the site's folder."""

from __future__ import annotations

from tfdet.verdicts.infer import CellKey


def page(environment: str, source: str) -> str:
    return f"cells/{environment}/{source}.html"


def address(key: CellKey) -> str:
    """Of its part of a page."""
    return f"{page(key.environment, key.source)}#{key.device}.{key.solution}"
