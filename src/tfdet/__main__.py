"""The command `tfdet`, and `python -m tfdet`: only what Ctrl-C needs is imported before it can be pressed."""

from __future__ import annotations

import os
import signal

_INTERRUPTED = 130  # tfdet.base.errors has it too, and is not imported yet


def main() -> None:
    """Ctrl-C while modules are imported ends the process at once: nothing is under way."""
    caught = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # ignored behind nohup: then it stays so
    if caught:
        signal.signal(signal.SIGINT, _leave)
    from tfdet.cli.main import main as run

    if caught:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _leave(*_: object) -> None:
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
