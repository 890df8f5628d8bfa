"""Output for people: colour and tables on a terminal, plain when piped."""

from __future__ import annotations

import io
import os
import re
import sys
from typing import IO, cast

from rich.console import Console
from rich.text import Text

from tfdet.base.errors import TfdetError
from tfdet.base.visible import Guarded, visible

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LONGEST = 500  # of a line: what strangers' files say must not fill a terminal


def prepare() -> None:
    """Streams that take everything: a closed one leads nowhere, a letter that its encoding lacks is replaced."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            _to_nowhere(number)
            setattr(sys, name, open(number, "w", closefd=False))  # noqa: SIM115 (ours to the end)
        elif number == 1 and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def drop_output() -> None:
    """Give up what standard output did not take: the interpreter would try again at its end, and change the code."""
    _to_nowhere(1)


def _to_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)
    os.set_inheritable(number, True)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Nobody reads on: no reason to stop, nor for another exit code."""
        _to_nowhere(self.file.fileno())


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    # A pipe has no width: a table must not be cut at 80 columns there.
    guarded = cast(IO[str], Guarded(stream))
    return _Console(file=guarded, highlight=False, width=None if stream.isatty() else 200)


def out() -> Console:
    return _console(stderr=False)


def err() -> Console:
    return _console(stderr=True)


def plain(text: str) -> str:
    """Without control characters but the newline, what else is hidden shown, and no line longer than a screen."""
    lines = [visible(_CONTROL.sub("", line.replace("\t", " "))) for line in text.split("\n")]
    return "\n".join(line if len(line) <= _LONGEST else line[:_LONGEST] + " ..." for line in lines)


def complain(error: TfdetError) -> None:
    """The cause and the advice; never a traceback."""
    console = err()
    console.print(Text.assemble(("tfdet:", "bold red"), " ", plain(error.cause)), soft_wrap=True)
    if error.advice:
        console.print(Text("  " + plain(error.advice)), soft_wrap=True)


def note(text: str) -> None:
    err().print(Text(plain(text)), soft_wrap=True)


def write(text: str) -> None:
    """To standard output as it is; who reads no further costs nothing."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _to_nowhere(sys.stdout.fileno())
