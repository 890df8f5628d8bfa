"""python -m tfdeterminism.trace run | diff | locate | replay: see each one's --help."""

import importlib
import sys

from . import errors, usage

_COMMANDS = {"run": ("capture.run", "record a program"), "diff": ("analyse.diff", "compare traces"),
             "locate": ("analyse.locate", "run, compare, and name the op"),
             "replay": ("capture.replay", "run one op again on kept inputs")}


def main(argv):
    if not argv or argv[0] not in _COMMANDS:
        wanted = bool(argv) and argv[0] in ("-h", "--help")
        text = "usage: python -m tfdeterminism.trace COMMAND ...\n" + "".join(
            "  {:8} {}\n".format(name, what) for name, (_, what) in sorted(_COMMANDS.items()))
        (sys.stdout if wanted else sys.stderr).write(text)
        return 0 if wanted else 2
    command, arguments = argv[0], argv[1:]
    try:
        getattr(usage, command)(arguments)  # help and wrong usage end here, whatever this Python lacks
    except errors.BadUsage as error:
        errors.say(str(error))
        return errors.USAGE
    try:
        import numpy  # noqa: F401  (what every command begins with)
    except ImportError:
        errors.say("this Python has no NumPy: call the one that has your TensorFlow")
        return usage.BAD_INPUT if command in ("diff", "locate") else errors.USAGE
    return importlib.import_module("{}.{}".format(__package__, _COMMANDS[command][0])).main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
