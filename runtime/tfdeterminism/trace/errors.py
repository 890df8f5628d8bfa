"""What can be wrong with a run, and with which exit code it is said."""

import sys

MODULE = "tfdeterminism.trace"  # what Python's -m calls us
SAID = MODULE + ": "  # begins what is ours in a program's output

USAGE = 2           # wrong command line, an output folder in use, a program that is not there
NOTHING = 4         # the program ran, and no op was seen
INCOMPLETE = 5      # the program ran, and its trace could not be written to the end


class BadUsage(Exception):
    """cause, advice: one line each."""

    def __init__(self, cause, advice):
        Exception.__init__(self, "{}: {}".format(cause, advice))


def say(text):
    """One line on standard error that cannot be taken for the program's own."""
    try:
        sys.stderr.write(SAID + text + "\n")
        sys.stderr.flush()
    except (IOError, OSError, ValueError, AttributeError):  # the program closed it
        pass
