"""Where pages of cells are, below the site's folder."""

from __future__ import annotations

from tfdet.verdicts.infer import CellKey


def cell_page_path(environment: str, source: str) -> str:
    return f"cells/{environment}/{source}.html"


def cell_url(key: CellKey) -> str:
    """Of its part of a page."""
    return f"{cell_page_path(key.environment, key.source)}#{key.device}.{key.solution}"
