"""The pages with hand-written content: the guide, the myths, the links, and how verdicts are inferred."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import tomli
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from pydantic import Field

from tfdet.matrix.field_types import StrictModel, Text
from tfdet.site import links
from tfdet.site.page import Page
from tfdet.site.site_facts import SiteFacts, cell_data
from tfdet.site.urls import cell_url
from tfdet.verdicts.infer import CellKey


class ExpectedCell(StrictModel):
    """A cell that supports the truth about a myth, and the verdict that it must have; a test compares them."""

    environment: Text
    device: Text
    source: Text
    solution: Text
    verdict: Text
    says: Text = Field(description="what it shows, in a sentence")

    @property
    def key(self) -> CellKey:
        return CellKey(self.environment, self.device, self.source, self.solution)


class ExternalCheck(StrictModel):
    """A test that supports the truth about a myth: a file of this repository, and the test's name."""

    file: Text
    name: Text
    says: Text


class Myth(StrictModel):  # the talk: "Determinism in Deep Learning", NVIDIA, 2019
    key: Text
    claim: Text
    framework: Text | None = Field(default=None, description="whose users say so; none: from the list in the talk")
    truth: list[Text] = Field(min_length=1)
    cells: list[ExpectedCell] = Field(default=[], description="that support the truth")
    tests: list[ExternalCheck] = Field(default=[], description="that support the truth")


@cache
def myths() -> list[Myth]:
    text = (files("tfdet.site") / "content" / "myths.toml").read_text("utf-8")
    return [Myth.model_validate(entry) for entry in tomli.loads(text)["myths"]]


def pages(facts: SiteFacts) -> Iterator[Page]:
    yield _myths(facts)
    yield _links(facts)
    yield _text(
        "guide",
        "How to make your training deterministic",
        "TensorFlow 1 and 2, stock and NVIDIA's images: seeds, switches, ops to avoid, pipelines, checks.",
    )
    yield _text("how", "How we know", "What each verdict, mark and kind of backing says, and what it does not say.")


def _myths(facts: SiteFacts) -> Page:
    entries = [{"key": myth.key, "claim": myth.claim, "framework": myth.framework, "truth": myth.truth,
             "cells": [_current_cell(facts, expected) for expected in myth.cells],
             "tests": [test.model_dump() for test in myth.tests]} for myth in myths()]  # fmt: skip
    return Page(
        path="myths",
        kind="myths",
        title="Myths and facts",
        description="What people say about determinism in deep learning, and what the records show.",
        data={"myths": entries},
    )


def _current_cell(facts: SiteFacts, expected: ExpectedCell) -> dict[str, Any]:
    """Return the cell with its current verdict, so that the page follows the evidence."""
    cell = facts.status.cell(expected.key)
    return {**cell_data(cell), "says": expected.says, "expected": expected.verdict, "address": cell_url(cell.key)}


def _links(facts: SiteFacts) -> Page:
    catalogue = links.load_catalogue()
    return Page(
        path="links",
        kind="links",
        title="Issues and pull requests",
        description="Where determinism was asked for, worked on and settled.",
        data={"known_on": catalogue.known_on, "links": [link.data() for link in catalogue.links]},
        template_data={"titles": {key: source.title for key, source in facts.matrix.sources.items()}},
    )


def _text(name: str, title: str, description: str) -> Page:
    text = (files("tfdet.site") / "content" / f"{name}.markdown").read_text("utf-8")
    return Page(
        path=name,
        kind="prose",
        title=title,
        description=description,
        data={"markdown": text},
        template_data={"text": render_markdown(text)},
    )


def render_markdown(text: str) -> Markup:
    """Return Markdown as HTML; HTML in it is escaped."""
    markdown = reader()
    return to_markup(markdown, markdown.parse(text))


def reader(html: bool = False) -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": html}).enable("table")


def to_markup(markdown: MarkdownIt, tokens: Sequence[Token]) -> Markup:
    """Return Markdown tokens as HTML that the site's security policy permits."""
    for token in tokens:
        token.attrs.pop("style", None)  # the security policy forbids it
    text = markdown.renderer.render(tokens, markdown.options, {})
    # Wide code and tables can be scrolled, also by keyboard.
    text = text.replace("<pre>", '<pre tabindex="0">').replace("</table>", "</table></div>")
    return Markup(text.replace("<table>", '<div class="scroll" tabindex="0" role="region" aria-label="table"><table>'))
