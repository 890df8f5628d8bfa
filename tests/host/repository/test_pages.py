"""Pages that people read in the repository: short entry pages, no broken link."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from markdown_it import MarkdownIt

from tfdet.base.paths import Project

MAX_README_BYTES = 6144  # bytes of README.md: what somebody reads who has just arrived


def pages(root: Path) -> list[Path]:
    """Return all Markdown files of the repository."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=root, capture_output=True, text=True, check=True)
    return [root / name for name in listed.stdout.split()]


def anchor(heading: str) -> str:
    """Return a heading's anchor, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def headings(path: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    tokens = MarkdownIt().parse(path.read_text("utf-8"))
    return {anchor(tokens[n + 1].content) for n, token in enumerate(tokens) if token.type == "heading_open"}


def links(path: Path) -> set[str]:
    """Return the targets of a page's links, without web addresses."""
    targets = set()
    for token in MarkdownIt("commonmark").enable("table").parse(path.read_text("utf-8")):
        for child in token.children or []:
            if child.type == "link_open":
                targets.add(str(child.attrs["href"]))
    return {link for link in targets if not re.match(r"[a-z]+:", link)}


def test_the_readme_is_short(checkout: Project) -> None:
    assert len((checkout.root / "README.md").read_bytes()) <= MAX_README_BYTES


def test_every_link_leads_somewhere(checkout: Project) -> None:
    broken = []
    for page in pages(checkout.root):
        for link in links(page):
            name, _, fragment = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists() or (fragment and fragment not in headings(target)):
                broken.append(f"{page.relative_to(checkout.root)}: {link}")
    assert not broken


def test_no_word_of_the_readmes_table_is_wider_than_a_column(checkout: Project) -> None:
    """At 900 pixels, some 110 letters, a table of five columns has room for words of 45."""
    rows = re.findall(r"^\|.*\|$", (checkout.root / "README.md").read_text("utf-8"), re.M)
    words = [word for row in rows for cell in row.split("|")[1:-1] for word in re.sub(r"<[^>]+>", "", cell).split()]
    assert rows and max(map(len, words)) <= 45
