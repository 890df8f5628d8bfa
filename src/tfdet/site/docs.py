"""The pages of docs/ as pages of the site, with links between the pages and anchors for the headings."""

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

from tfdet.base.folders import is_there, walk_files
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
    """A heading.  anchor: its id, for links to it."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True)
class Document:
    """One page of docs/.  root: the repository's folder.  name: the page's path in it."""

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
            Heading(int(token.tag[1]), plain_text(self.tokens[index + 1]), str(token.attrs["id"]))
            for index, token in enumerate(self.tokens)
            if token.type == "heading_open"
        ]

    @property
    def title(self) -> str:
        return self.headings[0].text

    @property
    def description(self) -> str:
        """The beginning of its first paragraph, at most _MAX_DESCRIPTION characters."""
        first = (self.tokens[index + 1] for index, token in enumerate(self.tokens) if token.type == "paragraph_open")
        text = plain_text(next(first))
        return text if len(text) <= _MAX_DESCRIPTION else f"{text[:_MAX_DESCRIPTION].rsplit(' ', 1)[0]} …"

    def rendered(self, repository: str = "") -> Markup:
        """Return the page as HTML.

        repository: URL of the repository, for links to its other files; if empty, such links become plain text.
        """
        markdown = reader(html=True)
        markdown.add_render_rule("html_inline", _safe_html)
        markdown.add_render_rule("html_block", _safe_html)
        return to_markup(markdown, self._with_links(self.tokens, repository))

    def _with_links(self, tokens: list[Token], repository: str) -> list[Token]:
        return [
            token.copy(children=list(self._resolve_links(token.children, repository))) if token.children else token
            for token in tokens
        ]

    def _resolve_links(self, tokens: list[Token], repository: str) -> Iterator[Token]:
        is_dropped = False  # whether the current link is dropped; links do not nest
        for token in tokens:
            if token.type == "link_open":
                address = self._resolve_link(str(token.attrs["href"]), repository)
                is_dropped = not address
                if address:
                    yield token.copy(attrs={**token.attrs, "href": address})
            elif token.type != "link_close" or not is_dropped:
                yield token

    def _resolve_link(self, link: str, repository: str) -> str:
        """Return the address of a link's target on the site; empty if there is none."""
        if link.startswith("#") or _SCHEME.match(link):
            return link
        target, mark, anchor = link.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(self.name), target))
        if target.startswith(f"{FOLDER}/") and target.endswith(".md") and is_there(self.root / target):
            page = f"{target.removesuffix('.md')}.html"
            return posixpath.relpath(page, posixpath.dirname(self.name)) + mark + anchor
        return f"{repository}/blob/main/{target}{mark}{anchor}" if repository else ""


def with_anchors(tokens: list[Token]) -> list[Token]:
    """Give each heading an id, as GitHub does."""
    counts: Counter[str] = Counter()
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            anchor = re.sub(r"[^\w\- ]", "", tokens[index + 1].content.lower()).replace(" ", "-")
            token.attrSet("id", f"{anchor}-{counts[anchor]}" if counts[anchor] else anchor)
            counts[anchor] += 1
    return tokens


def plain_text(inline: Token) -> str:
    parts = (" " if child.type == "softbreak" else child.content for child in inline.children or [])
    return "".join(part for part in parts if not part.startswith("<"))


def _safe_html(_renderer: object, tokens: list[Token], index: int, *_: object) -> str:
    """Return a few tags without attributes unchanged; remove comments, and escape all other HTML."""
    text = _COMMENT.sub("", tokens[index].content)
    return text if _PLAIN_HTML.fullmatch(text) else html.escape(text.strip())


def documents(root: Path) -> list[Document]:
    """Return the pages of docs/ in a repository; empty if it has none."""
    folder = root / FOLDER
    return [
        Document(root, path.relative_to(root).as_posix(), path.read_text("utf-8"))
        for path in walk_files(folder, "*.md")
    ]


def pages(document_list: list[Document], repository: str = "") -> Iterator[Page]:
    for document in document_list:
        data = {
            "purpose": document.purpose,
            "headings": [[heading.level, heading.text, heading.anchor] for heading in document.headings],
            "markdown": document.text,
        }
        template_data = {"text": document.rendered(repository), "purposes": PURPOSES}
        yield Page(
            path=document.path,
            kind="docs",
            title=document.title,
            description=document.description,
            data=data,
            template_data=template_data,
        )


def search_data(document_list: list[Document]) -> list[list[Any]]:
    """Return [address, title, [heading, anchor, heading, anchor...]] of each page."""
    return [
        [
            f"{document.path}.html",
            document.title,
            [text for heading in document.headings[1:] for text in (heading.text, heading.anchor)],
        ]
        for document in document_list
    ]
