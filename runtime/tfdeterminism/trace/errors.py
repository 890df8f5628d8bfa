"""The exit codes of the commands, the error of wrong usage, and the log on standard error."""

import sys

MODULE = "tfdeterminism.trace"  # name for python -m
LOG_PREFIX = MODULE + ": "  # prefix of the tool's lines in a program's output

# Exit codes: those of tfdet, and those that a trace alone has (docs/reference/exit-codes.md).
EXIT_SAME = 0            # no difference was found
EXIT_DIFFERS = 1         # two runs differ, in a value or in what they execute
EXIT_USAGE = 2           # wrong command line, an output folder in use, no such program, not a trace
EXIT_FAILED = 3          # the program failed, or the system refused something
EXIT_NO_DEVICE = 4          # the virtual GPU was asked for, and the program ran nothing there
EXIT_FIXED = 5           # two runs differ, and what --fix applied makes the program repeat itself
EXIT_NOTHING_RECORDED = 6  # the program ran, and no op was seen
EXIT_INCOMPLETE = 7      # the program ran, and its trace could not be written to the end
EXIT_INTERRUPTED = 130   # Ctrl-C


class UsageError(Exception):
    """A wrong use of a command. cause, advice: one line each."""

    def __init__(self, cause, advice):
        Exception.__init__(self, "{}: {}".format(cause, advice))


def log(text):
    """Write one line on standard error with a prefix that distinguishes it from the program's output."""
    try:
        sys.stderr.write(LOG_PREFIX + text + "\n")
        sys.stderr.flush()
    except (IOError, OSError, ValueError, AttributeError):  # the program closed it
        pass
