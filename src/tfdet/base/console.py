"""Output to standard output and standard error: color and tables on a terminal, plain text in a pipe."""

from __future__ import annotations

import io
import os
import re
import sys
from typing import IO, cast

from rich.console import Console
from rich.text import Text

from tfdet.base.errors import TfdetError
from tfdet.base.sanitize import SanitizingStream, escape_hidden

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MAX_LINE_LENGTH = 500  # characters: text from untrusted files must not fill a terminal


def configure_streams() -> None:
    """Make standard output and error accept any text: if closed, they go to /dev/null; unencodable letters become ?."""
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            _redirect_to_devnull(descriptor)
            setattr(sys, name, open(descriptor, "w", closefd=False))  # noqa: SIM115 (open until the process ends)
        elif descriptor == 1 and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def drop_output() -> None:
    """Discard buffered standard output: at exit the interpreter would write it again, and change the exit code."""
    _redirect_to_devnull(1)


def _redirect_to_devnull(descriptor: int) -> None:
    devnull = os.open(os.devnull, os.O_WRONLY)
    if devnull != descriptor:
        os.dup2(devnull, descriptor)
        os.close(devnull)
    os.set_inheritable(descriptor, True)


class _Console(Console):
    """rich's console, with another behavior for closed pipes."""

    def on_broken_pipe(self) -> None:
        """Ignore a closed pipe, instead of ending with another exit code as rich does."""
        _redirect_to_devnull(self.file.fileno())


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    sanitizing = cast(IO[str], SanitizingStream(stream))
    # A pipe has no width: without this, rich would cut tables at 80 columns.
    return _Console(file=sanitizing, highlight=False, width=None if _has_width(stream) else 200)


def _has_width(stream: IO[str]) -> bool:
    """Tell whether the stream is a terminal, or COLUMNS says how wide what reads it is."""
    return stream.isatty() or os.environ.get("COLUMNS", "").isdigit()


def out() -> Console:
    """Return the console of standard output."""
    return _console(stderr=False)


def err() -> Console:
    """Return the console of standard error."""
    return _console(stderr=True)


def page_width() -> int:
    """Return the width in characters of what is read as a page: a terminal's, at most 100; 80 in a pipe."""
    return min(out().width, 100) if _has_width(sys.stdout) else 80


def sanitize_text(text: str) -> str:
    """Drop control characters except newlines, escape other hidden characters, and cut lines at 500 characters."""
    lines = [escape_hidden(_CONTROL.sub("", line.replace("\t", " "))) for line in text.split("\n")]
    return "\n".join(line if len(line) <= _MAX_LINE_LENGTH else line[:_MAX_LINE_LENGTH] + " ..." for line in lines)


def print_error(error: TfdetError) -> None:
    """Print the cause and the advice to standard error; never a traceback."""
    console = err()
    console.print(Text.assemble(("tfdet:", "bold red"), " ", sanitize_text(error.cause)), soft_wrap=True)
    if error.advice:
        console.print(Text("  " + sanitize_text(error.advice)), soft_wrap=True)


def print_note(text: str) -> None:
    """Print a line to standard error."""
    err().print(Text(sanitize_text(text)), soft_wrap=True)


def write(text: str) -> None:
    """Write text unchanged to standard output; ignore a closed pipe."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _redirect_to_devnull(sys.stdout.fileno())
