"""The Atom feed of changed verdicts, and the sitemap for search engines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from tfdet.base.sanitize import escape_hidden
from tfdet.site.history import VerdictChange

_ATOM = "http://www.w3.org/2005/Atom"
_MAX_ENTRIES, _MAX_CELLS = 60, 50  # entries of the feed; cells listed in one entry
_ID = "tag:tfdet,2026"


def files(changes: Sequence[VerdictChange], url: str) -> Iterator[tuple[str, str]]:
    yield "feed.xml", _feed(changes, url)


def _feed(changes: Sequence[VerdictChange], url: str) -> str:
    by_place: dict[tuple[str, str, str], list[VerdictChange]] = defaultdict(list)
    for change in changes:
        by_place[change.day, change.key.environment, change.key.device].append(change)
    feed = ElementTree.Element("feed", {"xmlns": _ATOM})
    newest = max((day for day, _, _ in by_place), default="1970-01-01")
    _add_elements(feed, title="tfdet: what the evidence changed", id=f"{_ID}:feed", updated=f"{newest}T00:00:00Z")
    _add_elements(ElementTree.SubElement(feed, "author"), name="tfdet")
    ElementTree.SubElement(feed, "link", {"rel": "self", "href": f"{url}feed.xml"})
    ElementTree.SubElement(feed, "link", {"rel": "alternate", "type": "text/html", "href": url or "index.html"})
    for (day, environment, device), group in sorted(by_place.items(), reverse=True)[:_MAX_ENTRIES]:
        entry = ElementTree.SubElement(feed, "entry")
        _add_elements(entry, title=f"{environment} on {device}: {len(group)} cells", updated=f"{day}T00:00:00Z",
               id=f"{_ID}:{day}:{environment}:{device}", summary="\n".join(_change_lines(group)))  # fmt: skip
        link = f"{url}environments/{environment}.html"
        ElementTree.SubElement(entry, "link", {"rel": "alternate", "type": "text/html", "href": link})
    return _xml(feed)


def _change_lines(changes: Sequence[VerdictChange]) -> Iterator[str]:
    for change in changes[:_MAX_CELLS]:
        before = f"{change.before} → " if change.before else ""
        yield escape_hidden(f"{change.key.source} under {change.key.solution}: {before}{change.after}")
    if len(changes) > _MAX_CELLS:
        yield f"and {len(changes) - _MAX_CELLS} more"


def _add_elements(parent: ElementTree.Element, **texts: str) -> None:
    for name, text in texts.items():
        ElementTree.SubElement(parent, name).text = text


def sitemap(folder: Path, url: str) -> str:
    """Return a sitemap of all pages in the built folder."""
    urls = ElementTree.Element("urlset", {"xmlns": "http://www.sitemaps.org/schemas/sitemap/0.9"})
    for path in sorted(folder.rglob("*.html")):
        _add_elements(ElementTree.SubElement(urls, "url"), loc=f"{url}{path.relative_to(folder).as_posix()}")
    return _xml(urls)


def _xml(element: ElementTree.Element) -> str:
    ElementTree.indent(element, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(element, "unicode") + "\n"
