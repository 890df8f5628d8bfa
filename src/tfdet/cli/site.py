"""The command `tfdet site`: builds the published pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tfdet.base import console
from tfdet.base.errors import UsageError
from tfdet.base.paths import find_project

PORT = 8000


def site(
    out: Annotated[Path, typer.Option(help="folder to write the site to; replaces an older site there")],
    url: Annotated[
        str, typer.Option(help="https address of the published site, for feed, sitemap and metadata; default: none")
    ] = "",
    repository: Annotated[
        str, typer.Option(metavar="URL", help="https address of this project's source, for a link; default: none")
    ] = "",
    serve: Annotated[bool, typer.Option("--serve", help="serve the site on this machine until Ctrl-C")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="PORT", help="with --serve: port to listen on")] = PORT,
) -> None:
    """Build the web pages, each with its JSON file; they need no network and no server."""
    from tfdet.site.build import build

    for name, text in (("--url", url), ("--repository", repository)):
        if text and not text.startswith("https://"):
            raise UsageError(f"{name} {text}: not an https address", "Pass an address that begins with https://.")
    built = build(find_project(), out, url and url.rstrip("/") + "/", repository)
    console.print_note(f"{built.pages:,} pages: {out / 'index.html'}")
    if serve:
        from tfdet.site.serve import serve as serve_site

        serve_site(out, port)
