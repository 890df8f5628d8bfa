"""Pages as HTML, each with a JSON twin of the same data."""

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

VERSION: Final = 1  # format version of the JSON twins, see docs/reference/site.md
MAX_TEXT_CHARACTERS: Final = 4000  # of one text on a page; the JSON twin has the complete text


@dataclass(frozen=True)
class Page:
    """A page.

    path: below the site's folder, without suffix.  kind: the name of its template, also in the twin.
    data: the content of the twin, also for the template.  template_data: values for the template only.
    scripts: paths of JavaScript files.
    """

    path: str
    kind: str
    title: str
    description: str
    data: Mapping[str, Any]
    template_data: Mapping[str, Any] = field(default_factory=dict)
    scripts: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The relative path to the site's folder, so that links work at any address and on a disk."""
        return "../" * self.path.count("/")


class Subpage(NamedTuple):
    """One of several pages with the same content.

    suffix: for its title.  data: its number and the paths of all parts, for page and twin.
    """

    path: str
    suffix: str
    data: dict[str, Any]


def subpages(base: str, count: int) -> list[Subpage]:
    """Return the subpages of a page; the first has the path `base`."""
    paths = [base, *(f"{base}-{number}" for number in range(2, count + 1))]
    parts = [f"{path}.html" for path in paths]
    return [
        Subpage(path, f" ({number} of {count})" if count > 1 else "", {"parts": parts, "part": number})
        for number, path in enumerate(paths, 1)
    ]


def twin(page: Page) -> str:
    """Return the JSON twin of a page."""
    content = {"format": "tfdet-site", "version": VERSION, "kind": page.kind, "page": f"{page.path}.html",
               "title": wording.strip_code(page.title), "data": page.data}  # fmt: skip
    return escape_json(msgspec.json.encode(content).decode("utf-8", "replace")) + "\n"


@dataclass(frozen=True)
class Writer:
    """Writes pages below a folder.  site: facts for all pages, such as the fingerprint of the data and the URL."""

    folder: Path
    site: Mapping[str, Any]

    def write(self, page: Page) -> None:
        self.text(f"{page.path}.json", twin(page))
        self.text(f"{page.path}.html", self.html(page))

    def html(self, page: Page) -> str:
        template = _engine().get_template(f"{page.kind}.html.j2")
        return template.render(page.data, **page.template_data, page=page, root=page.root, site=self.site)

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
        code=wording.render_code, cited=wording.link_citations, plain=wording.strip_code, truncated=truncate
    )
    engine.globals.update(verdicts=wording.VERDICTS, backings=wording.BACKINGS)
    return engine


def _finalize(value: object) -> object:
    """Make untrusted text safe to show: escape hidden characters, and truncate long texts."""
    return escape_hidden(truncate(value, MAX_TEXT_CHARACTERS)) if type(value) is str else value


def truncate(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]} … ({len(text):,} characters; the JSON has them all)"


def render_fragment(template: str, **context: Any) -> Markup:
    """Return a part of a page as HTML."""
    return Markup(_engine().get_template(f"{template}.html.j2").render(**context))


def data_script(name: str, value: object) -> str:
    """Return a script that sets a variable: a page that is opened as a file cannot fetch JSON, but can run scripts."""
    return f"window.{name}={json.dumps(value, separators=(',', ':'))};\n"
