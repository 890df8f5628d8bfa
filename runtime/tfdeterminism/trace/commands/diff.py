"""The command that compares traces and names the culprit: ``python -m tfdeterminism.trace diff A B [C...] [--json]``.

Exit codes: 0 the same, 1 the runs differ, 2 wrong usage or a file that is not a trace, 3 not enough memory.
"""

import sys

from .. import command_line, errors, untrusted
from ..causes import trace_diff
from ..report import text
from ..schema import format as trace_format


def main(arguments=None, out=None):
    """Run the command, and return the exit code."""
    out = out or sys.stdout
    options = command_line.diff(arguments)
    if len(options.trace) < 2:
        return command_line.print_error("one trace cannot be compared", "name two or more: diff A B [C...]")
    try:
        difference = trace_diff.compare(options.trace)
    except trace_format.TraceFormatError as error:
        return command_line.print_error(error.cause, error.advice)
    except MemoryError:
        return command_line.print_error("not enough memory for these traces", "record fewer steps: run --steps 0:20",
                                     errors.EXIT_FAILED)
    out.write((untrusted.to_json(difference.as_json()) if options.json else text.diff_text(difference)) + "\n")
    return trace_diff.CODES[difference.result]
