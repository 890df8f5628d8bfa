"""The command that finds a program's culprit: ``python -m tfdeterminism.trace locate [--max-runs N] -- train.py ARGS``.

It runs the program several times, each time in more detail: digests of weights and losses until two runs differ, of
layers, of every op at the step that differs; then the culprit alone, on its recorded inputs. It ends with one verdict
and the lines of code to change.

Exit codes: 0 no difference found, 1 the runs differ, 2 wrong usage, 3 the program failed, 4 the virtual GPU was asked
for, and the program ran nothing there, 5 the runs differ, and what --fix applied makes the program repeat itself, 130
stopped by Ctrl-C.
"""

import os
import shutil
import signal
import sys
import tempfile

from .. import command_line, errors, untrusted
from ..report import cause_text, text
from ..schema.format import TraceFormatError
from ..search.locate import Locate
from ..search.program_runner import DeviceUnusedError, ProgramFailedError
from ..search.schedules import Schedules


def main(arguments=None, out=None):
    """Run the command, and return the exit code."""
    out = out or sys.stdout
    options = command_line.locate(arguments)
    program = command_line.program_of(options.program)
    if not program:
        return command_line.print_error("no program is named", "locate -- train.py ARGS")
    folder, temporary_folder = os.path.abspath(options.keep_traces or os.curdir), None
    # vary_env: None, or (name of a variable, its values, of which each run gets the next).
    search = Locate(program, options.max_runs, Schedules(*options.vary_env or ()), options.fix, options.trace_only,
                    options.steps, options.agree_runs)
    try:
        if options.keep_traces:
            os.makedirs(folder)
        else:
            folder = tempfile.mkdtemp(prefix="tfdet-locate-")
            temporary_folder = folder
        previous = signal.signal(signal.SIGTERM, _stop)
        try:
            result = search.run(folder)
        finally:
            signal.signal(signal.SIGTERM, previous)
    except DeviceUnusedError as error:
        return command_line.print_error(error.cause, error.advice, errors.EXIT_NO_DEVICE)
    except (ProgramFailedError, TraceFormatError) as error:
        return command_line.print_error(search.as_users(error.cause), error.advice, errors.EXIT_FAILED)
    except (IOError, OSError) as error:
        cause, advice = command_line.describe_os_error(error, folder)
        return command_line.print_error(cause, advice, errors.EXIT_FAILED)
    except KeyboardInterrupt:
        for line in search.known():
            errors.log(untrusted.sanitize_line(line))
        return command_line.print_error("stopped", "no run is left behind", errors.EXIT_INTERRUPTED)
    finally:
        if temporary_folder:
            shutil.rmtree(temporary_folder, ignore_errors=True)
    report = untrusted.to_json(dict(result.as_json(), report=cause_text.lines(result))) if options.json else \
        text.search_text(result)
    out.write(search.as_users(report) + "\n")  # names the user's files, not those of the copy that was run
    return result.code


def _stop(number, frame):
    raise KeyboardInterrupt
