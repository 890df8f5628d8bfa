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
        is_help = bool(argv) and argv[0] in ("-h", "--help")
        text = "usage: python -m tfdeterminism.trace COMMAND ...\n" + "".join(
            "  {:8} {}\n".format(name, description) for name, (_, description) in sorted(_COMMANDS.items()))
        (sys.stdout if is_help else sys.stderr).write(text)
        return 0 if is_help else 2
    # Behind nohup SIGINT is ignored, and stays so.
    raises_interrupt = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if raises_interrupt:
        signal.signal(signal.SIGINT, _leave)
    command = _command(argv[0], argv[1:])
    if raises_interrupt:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return command(argv[1:]) if callable(command) else command
    except KeyboardInterrupt:
        return INTERRUPTED


def _leave(number, frame):
    """Exit on Ctrl-C while modules are imported: an exception could be swallowed by an import."""
    os._exit(INTERRUPTED)


def _command(name, arguments):
    """Return the main function of a command, or the exit code if it cannot run."""
    import importlib

    from . import command_line, errors
    try:
        getattr(command_line, name)(arguments)  # help and usage errors end here, even if NumPy is missing
    except errors.UsageError as error:
        errors.log(str(error))
        return errors.EXIT_USAGE
    try:
        import numpy  # noqa: F401  (every command needs it)
    except ImportError:
        errors.log("this Python has no NumPy: call the one that has your TensorFlow")
        return errors.EXIT_USAGE
    return importlib.import_module("{}.{}".format(__package__, _COMMANDS[name][0])).main


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
