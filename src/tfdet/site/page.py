"""A page and its JSON twin, which says the same: both are made of one `data`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from tfdet.base.files import add_path_to_errors
from tfdet.base.sanitize import escape_hidden, escape_json
from tfdet.site import wording

VERSION: Final = 1  # of the twins' shape; docs/reference/site.md describes it
MAX_TEXT_CHARACTERS: Final = 4000  # characters of one text on a page; its twin has all of them


@dataclass(frozen=True)
class Page:
    """path: below the site's folder, without suffix.  kind: names its template and what its twin holds.

    shown: what the template needs beside `data` and no machine asks for.
    """

    path: str
    kind: str
    title: str
    description: str
    data: Mapping[str, Any]
    shown: Mapping[str, Any] = field(default_factory=dict)
    scripts: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The way up to the site's folder: links must hold wherever that lies, on a disk too."""
        return "../" * self.path.count("/")


class Subpage(NamedTuple):
    """One of the pages that something long takes.  suffix: of its title.  data: what page and twin say of the rest."""

    path: str
    suffix: str
    data: dict[str, Any]


def subpages(base: str, count: int) -> list[Subpage]:
    """The first has the plain path."""
    paths = [base, *(f"{base}-{number}" for number in range(2, count + 1))]
    parts = [f"{path}.html" for path in paths]
    return [
        Subpage(path, f" ({number} of {count})" if count > 1 else "", {"parts": parts, "part": number})
        for number, path in enumerate(paths, 1)
    ]


def twin(page: Page) -> str:
    content = {"format": "tfdet-site", "version": VERSION, "kind": page.kind, "page": f"{page.path}.html",
               "title": wording.strip_code(page.title), "data": page.data}  # fmt: skip
    return escape_json(msgspec.json.encode(content).decode("utf-8", "replace")) + "\n"


@dataclass(frozen=True)
class Writer:
    """Writes pages below a folder.  site: what every page shows: the fingerprint of its data, the address."""

    folder: Path
    site: Mapping[str, Any]

    def write(self, page: Page) -> None:
        self.text(f"{page.path}.json", twin(page))
        self.text(f"{page.path}.html", self.html(page))

    def html(self, page: Page) -> str:
        template = _engine().get_template(f"{page.kind}.html.j2")
        return template.render(page.data, **page.shown, page=page, root=page.root, site=self.site)

    def text(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with add_path_to_errors(path):
            path.write_text(text, "utf-8", newline="")


@cache
def _engine() -> Environment:
    folder = files("tfdet.site") / "templates"
    engine = Environment(
        loader=DictLoader({item.name: item.read_text("utf-8") for item in folder.iterdir()}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    engine.filters.update(
        code=wording.render_code, cited=wording.link_citations, plain=wording.strip_code, cut=truncate
    )
    engine.globals.update(verdicts=wording.VERDICTS, backings=wording.BACKINGS)
    return engine


def _finalize(value: object) -> object:
    """Text from strangers: what is hidden is shown, what is endless ends."""
    return escape_hidden(truncate(value, MAX_TEXT_CHARACTERS)) if type(value) is str else value


def truncate(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]} … ({len(text):,} characters; the JSON has them all)"


def render_fragment(template: str, **context: Any) -> Markup:
    """A part of a page by itself, which may be as long as evidence is."""
    return Markup(_engine().get_template(f"{template}.html.j2").render(**context))


def data_script(name: str, value: object) -> str:
    """A page that is opened as a file may fetch nothing, but it may run a script beside it."""
    return f"window.{name}={json.dumps(value, separators=(',', ':'))};\n"
