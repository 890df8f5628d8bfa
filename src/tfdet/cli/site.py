"""`tfdet site`: the published pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tfdet.base import console
from tfdet.base.errors import UsageError
from tfdet.base.paths import find_project

PORT = 8000


def site(
    out: Annotated[Path, typer.Option(help="the folder that they are made in, whole; an older site there goes")],
    url: Annotated[str, typer.Option(help="where they will be published: for feed, sitemap and metadata")] = "",
    repository: Annotated[str, typer.Option(help="where this project's source and data are, for a link")] = "",
    serve: Annotated[bool, typer.Option("--serve", help="then show them on this machine, until Ctrl-C")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="with --serve")] = PORT,
) -> None:
    """Pages for people, each with its JSON beside it; they need no network and no server."""
    from tfdet.site.build import build

    for name, text in (("--url", url), ("--repository", repository)):
        if text and not text.startswith("https://"):
            raise UsageError(f"{name} {text}", "Give an address that begins with https://.")
    built = build(find_project(), out, url and url.rstrip("/") + "/", repository)
    console.note(f"{built.pages:,} pages: {out / 'index.html'}")
    if serve:
        from tfdet.site.serve import serve as show

        show(out, port)
