"""Find the culprit of a program: ``python -m tfdeterminism.trace locate [--runs N] -- train.py ARGS``.

Runs the program again and again, each time looking closer: digests of weights and losses until two
runs differ, of layers, of every op at the step that differs; then the culprit alone, on the inputs
that it had. Ends with one verdict and the lines of code to change.

Exit codes: 0 no difference found, 1 culprit named, 2 the runs do not do the same things, 3 bad input
(also: the program fails), 5 culprit named, and what --fix applied makes the program repeat itself, 130
stopped by Ctrl-C.
"""

import json
import os
import shutil
import signal
import sys
import tempfile

from .. import usage
from . import text
from .format import BadTrace
from .launch import Failed
from .schedules import Schedules
from .search import Search

INTERRUPTED = 130


def main(arguments=None, out=None):
    """The command; gives the exit code."""
    out = out or sys.stdout
    options = usage.locate(arguments)
    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not program:
        return usage.complain("no program is named", "locate -- train.py ARGS")
    folder = os.path.abspath(options.keep) if options.keep else tempfile.mkdtemp(prefix="tfdet-locate-")
    try:
        if options.keep:
            os.makedirs(folder)
        previous = signal.signal(signal.SIGTERM, _stop)
        try:
            found = Search(program, folder, options.runs, schedules=Schedules(*options.vary or ()),
                           fix=options.fix).search()
        finally:
            signal.signal(signal.SIGTERM, previous)
    except (Failed, BadTrace) as error:
        return usage.complain(error.cause, error.advice)
    except (IOError, OSError) as error:
        return usage.complain("{}: {}".format(error.filename or folder, error.strerror), "see that there is space left")
    except KeyboardInterrupt:
        usage.complain("stopped", "no run is left behind")
        return INTERRUPTED
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    out.write((json.dumps(found.as_json(), indent=1) if options.json else text.of_search(found)) + "\n")
    return found.code


def _stop(number, frame):
    raise KeyboardInterrupt
