"""Serve a built site on this machine only."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tfdet.base import console


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server on the loopback interface.  port: 0 for any free port."""
    return ThreadingHTTPServer(("127.0.0.1", port), partial(_QuietHandler, directory=str(folder)))


def serve(folder: Path, port: int) -> None:
    """Serve a folder until Ctrl-C."""
    with server(folder, port) as running:
        console.print_note(f"http://127.0.0.1:{running.server_port}/ until Ctrl-C")
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            console.print_note("")
