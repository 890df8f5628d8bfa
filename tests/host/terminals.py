"""Run `tfdet` in a pipe and on a terminal of a given width."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_UNSET = ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TFDET_KEY", "PYTEST_XDIST_WORKER")


def in_a_pipe(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `tfdet` in the checkout at `root` with its output in a pipe, 80 columns wide."""
    environ = _environ(root) | {"COLUMNS": "80"}
    command = [sys.executable, "-m", "tfdet", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environ, timeout=120)


def on_a_terminal(root: Path, columns: int, *arguments: str) -> str:
    """Return what `tfdet` writes on a terminal of that width, with escape codes and without standard error."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    command = [sys.executable, "-m", "tfdet", *arguments]
    process = subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL, env=_environ(root) | {"TERM": "xterm"}
    )
    os.close(terminal)
    written = b""
    while block := _read(controller):
        written += block
    process.wait(timeout=60)
    os.close(controller)
    return written.decode().replace("\r\n", "\n")


def plain_lines(text: str) -> list[str]:
    """Return the lines without their escape codes."""
    return ESCAPE.sub("", text).splitlines()


def _environ(root: Path) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _UNSET} | {"TFDET_ROOT": str(root)}


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 1 << 16)
    except OSError:  # Linux reports a closed other end so
        return b""
