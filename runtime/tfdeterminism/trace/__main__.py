"""python -m tfdeterminism.trace run | diff | locate | replay: see each one's --help."""

import importlib
import sys

_COMMANDS = {"run": "record a program", "diff": "compare traces", "locate": "run, compare, and name the op",
             "replay": "run one op again on kept inputs"}


def main(argv):
    if not argv or argv[0] not in _COMMANDS:
        wanted = bool(argv) and argv[0] in ("-h", "--help")
        text = "usage: python -m tfdeterminism.trace COMMAND ...\n" + "".join(
            "  {:8} {}\n".format(name, what) for name, what in sorted(_COMMANDS.items()))
        (sys.stdout if wanted else sys.stderr).write(text)
        return 0 if wanted else 2
    return importlib.import_module("{}.{}".format(__package__, argv[0])).main(argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
