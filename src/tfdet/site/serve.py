"""A site on this machine alone, for looking at home."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tfdet.base import console


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Nobody wants to read of each file."""


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """port: 0 for any that is free."""
    return ThreadingHTTPServer(("127.0.0.1", port), partial(_Quiet, directory=str(folder)))


def serve(folder: Path, port: int) -> None:
    with server(folder, port) as running:
        console.print_note(f"http://127.0.0.1:{running.server_port}/ until Ctrl-C")
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            console.print_note("")
