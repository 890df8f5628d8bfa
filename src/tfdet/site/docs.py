"""The pages of docs/ as pages of the site: their links lead to pages, and their headings can be linked to."""

from __future__ import annotations

import html
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from markdown_it.token import Token
from markupsafe import Markup

from tfdet.base.folders import is_there, walked
from tfdet.site.page import Page
from tfdet.site.prose import reader, to_markup

FOLDER: Final = "docs"
PURPOSES: Final = {
    "tutorial": "Tutorials",
    "how-to": "How-to guides",
    "reference": "Reference",
    "explanation": "Explanation",
}
_SCHEME = re.compile(r"[a-z]+:")
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_PLAIN_HTML = re.compile(r"</?(?:sup|sub|br|kbd)>")
_MAX_DESCRIPTION = 240  # characters


@dataclass(frozen=True)
class Heading:
    """anchor: what an address names it by."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True)
class Document:
    """One page.  name: its path in the repository.  root: the repository's folder."""

    root: Path
    name: str
    text: str

    @property
    def path(self) -> str:
        """Its path on the site, without a suffix."""
        return self.name.removesuffix(".md")

    @property
    def purpose(self) -> str:
        """A key of PURPOSES; empty for the index."""
        return self.name.split("/")[1] if self.name.count("/") > 1 else ""

    @cached_property
    def tokens(self) -> list[Token]:
        return with_anchors(reader(html=True).parse(self.text))

    @cached_property
    def headings(self) -> list[Heading]:
        return [
            Heading(int(token.tag[1]), plain_text(self.tokens[at + 1]), str(token.attrs["id"]))
            for at, token in enumerate(self.tokens)
            if token.type == "heading_open"
        ]

    @property
    def title(self) -> str:
        return self.headings[0].text

    @property
    def description(self) -> str:
        """The beginning of its first paragraph."""
        first = (self.tokens[at + 1] for at, token in enumerate(self.tokens) if token.type == "paragraph_open")
        text = plain_text(next(first))
        return text if len(text) <= _MAX_DESCRIPTION else f"{text[:_MAX_DESCRIPTION].rsplit(' ', 1)[0]} …"

    def rendered(self, repository: str = "") -> Markup:
        """repository: the address to which links to other files of the repository lead; empty: they are plain text."""
        markdown = reader(html=True)
        markdown.add_render_rule("html_inline", _safe_html)
        markdown.add_render_rule("html_block", _safe_html)
        return to_markup(markdown, self._with_links(self.tokens, repository))

    def _with_links(self, tokens: list[Token], repository: str) -> list[Token]:
        return [
            token.copy(children=list(self._linked(token.children, repository))) if token.children else token
            for token in tokens
        ]

    def _linked(self, tokens: list[Token], repository: str) -> Iterator[Token]:
        dropped = False  # links do not nest
        for token in tokens:
            if token.type == "link_open":
                address = self._address(str(token.attrs["href"]), repository)
                dropped = not address
                if address:
                    yield token.copy(attrs={**token.attrs, "href": address})
            elif token.type != "link_close" or not dropped:
                yield token

    def _address(self, link: str, repository: str) -> str:
        """Where a link leads on the site; empty: nowhere."""
        if link.startswith("#") or _SCHEME.match(link):
            return link
        target, mark, anchor = link.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(self.name), target))
        if target.startswith(f"{FOLDER}/") and target.endswith(".md") and is_there(self.root / target):
            page = f"{target.removesuffix('.md')}.html"
            return posixpath.relpath(page, posixpath.dirname(self.name)) + mark + anchor
        return f"{repository}/blob/main/{target}{mark}{anchor}" if repository else ""


def with_anchors(tokens: list[Token]) -> list[Token]:
    """Each heading with an id, as GitHub makes it."""
    seen: Counter[str] = Counter()
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            anchor = re.sub(r"[^\w\- ]", "", tokens[at + 1].content.lower()).replace(" ", "-")
            token.attrSet("id", f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
            seen[anchor] += 1
    return tokens


def plain_text(inline: Token) -> str:
    parts = (" " if child.type == "softbreak" else child.content for child in inline.children or [])
    return "".join(part for part in parts if not part.startswith("<"))


def _safe_html(_renderer: object, tokens: list[Token], at: int, *_: object) -> str:
    """A few tags without attributes; comments vanish, all else is shown as text."""
    text = _COMMENT.sub("", tokens[at].content)
    return text if _PLAIN_HTML.fullmatch(text) else html.escape(text.strip())


def documents(root: Path) -> list[Document]:
    """Of the project in that folder; none where it has no docs."""
    folder = root / FOLDER
    return [
        Document(root, path.relative_to(root).as_posix(), path.read_text("utf-8")) for path in walked(folder, "*.md")
    ]


def pages(found: list[Document], repository: str = "") -> Iterator[Page]:
    for document in found:
        data = {
            "purpose": document.purpose,
            "headings": [[one.level, one.text, one.anchor] for one in document.headings],
            "markdown": document.text,
        }
        shown = {"text": document.rendered(repository), "purposes": PURPOSES}
        yield Page(document.path, "docs", document.title, document.description, data, shown)


def search_data(found: list[Document]) -> list[list[Any]]:
    """[address, title, [heading, anchor, heading, anchor...]] of each page."""
    return [
        [f"{one.path}.html", one.title, [text for h in one.headings[1:] for text in (h.text, h.anchor)]]
        for one in found
    ]
