"""python -m tfdeterminism.trace run | diff | locate | replay: see each one's --help."""

import os
import signal
import sys

INTERRUPTED = 130
_COMMANDS = {"run": ("capture.run", "record a program"), "diff": ("commands.diff", "compare traces"),
             "locate": ("commands.locate", "run, compare, and name the op"),
             "replay": ("capture.replay", "run one op again on kept inputs")}


def main(argv):
    if not argv or argv[0] not in _COMMANDS:
        wanted = bool(argv) and argv[0] in ("-h", "--help")
        text = "usage: python -m tfdeterminism.trace COMMAND ...\n" + "".join(
            "  {:8} {}\n".format(name, what) for name, (_, what) in sorted(_COMMANDS.items()))
        (sys.stdout if wanted else sys.stderr).write(text)
        return 0 if wanted else 2
    caught = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # ignored behind nohup: then it stays so
    if caught:
        signal.signal(signal.SIGINT, _leave)
    command = _command(argv[0], argv[1:])
    if caught:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return command(argv[1:]) if callable(command) else command
    except KeyboardInterrupt:
        return INTERRUPTED


def _leave(number, frame):
    """Ctrl-C while modules are imported: nothing is under way, and no import can swallow it."""
    os._exit(INTERRUPTED)


def _command(name, arguments):
    """The function that does it, or the exit code where it cannot."""
    import importlib

    from . import command_line, errors
    try:
        getattr(command_line, name)(arguments)  # help and wrong usage end here, whatever this Python lacks
    except errors.UsageError as error:
        errors.log(str(error))
        return errors.EXIT_USAGE
    try:
        import numpy  # noqa: F401  (what every command begins with)
    except ImportError:
        errors.log("this Python has no NumPy: call the one that has your TensorFlow")
        return errors.EXIT_USAGE
    return importlib.import_module("{}.{}".format(__package__, _COMMANDS[name][0])).main


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
