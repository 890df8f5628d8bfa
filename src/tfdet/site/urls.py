"""The addresses of pages of cells (one environment and source each), relative to the site's folder."""

from __future__ import annotations

from tfdet.verdicts.infer import CellKey


def cell_page_path(environment: str, source: str) -> str:
    return f"cells/{environment}/{source}.html"


def cell_url(key: CellKey) -> str:
    """Return the address of a cell's section on its page."""
    return f"{cell_page_path(key.environment, key.source)}#{key.device}.{key.solution}"
