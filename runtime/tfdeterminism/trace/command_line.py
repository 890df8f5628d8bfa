"""The command lines of run, diff, locate and replay. This module does not need NumPy, unlike the commands.

A solution has its key of remedies.py, such as ED for enable_determinism(). A pin gives a program the same value in
every run, for one kind of nondeterminism.
"""

import argparse
import errno
import os
import re
import sys

from . import errors
from .remedies import AUTOMATIC_FIXES
from .untrusted import sanitize_line

_LAUNCHERS = {"torchrun": "torch.distributed.run", "horovodrun": "horovod.runner.launch",
              "accelerate": "accelerate.commands.accelerate_cli"}  # commands that are Python modules
LEVELS = ("none", "weights", "layers", "unordered", "ops")


def program_of(arguments):
    """Return the argv of the program that Python runs.

    arguments: those behind the options, possibly a shell command: "-- python train.py", "-- torchrun --nproc_per_node 4
    train.py".
    """
    arguments = arguments[1:] if arguments[:1] == ["--"] else arguments
    name = arguments[0] if arguments and not os.path.exists(arguments[0]) else ""
    if re.match(r"python[\d.]*$", name):
        return arguments[1:]
    return ["-m", _LAUNCHERS[name]] + arguments[1:] if name in _LAUNCHERS else arguments


def print_error(cause, advice, code=errors.EXIT_USAGE):
    """Print two lines on standard error, and return the exit code."""
    text = "{}{}\n  {}".format(errors.LOG_PREFIX, cause, advice)  # may contain text of an untrusted file
    sys.stderr.write("".join(sanitize_line(line) + "\n" for line in text.split("\n")))
    return code


def describe_os_error(error, path):
    """Return (cause, advice), to be printed, for an error of the system. path: used if the error names none."""
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return ("{}: {}".format(error.filename or path, error.strerror or error),
            "free some space" if is_full else "name another folder, or change its permissions")


class _OneLineParser(argparse.ArgumentParser):
    """A parser that raises UsageError for wrong usage."""

    def error(self, message):
        raise errors.UsageError(message, "see --help")


def run(argv):
    parser = _OneLineParser(prog="python -m tfdeterminism.trace run",
                     usage="%(prog)s --out FOLDER [options] -- PROGRAM [ARGUMENTS...]")
    parser.add_argument("--out", required=True, help="a new folder for the trace")
    parser.add_argument("--level", choices=LEVELS, default="ops",
                        help="none: only the digest of the final weights; unordered: the ops alone that graphs leave "
                             "unordered, which run as they do without the tool; default ops")
    parser.add_argument("--steps", type=_parse_steps, help="FIRST:END, the steps to record; default all")
    parser.add_argument("--capture-inputs", metavar="JSON", dest="capture",
                        help="JSON of an op whose inputs are kept for replay")
    parser.add_argument("--record-values", metavar="JSON", dest="values",
                        help="keep values too: of losses, weights, and of the tensors that this names, "
                        "what `diff --json` printed or [] (at level weights they are kept anyway)")
    parser.add_argument("--no-xla", dest="xla", action="store_const", const=False,
                        help="switch XLA off at level none too, to compare with the other levels")
    parser.add_argument("--apply-solutions", dest="apply", type=_parse_remedies, default=[], metavar="NAME,NAME...",
                        help="solutions to apply before the program's first op, such as ED, SEED")
    parser.add_argument("program", help="a Python file; or -m MODULE")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    arguments = parser.parse_args(argv)
    if arguments.program == "--":
        parser.error("name the program after --")
    return arguments


def _parse_remedies(text):
    names = text.split(",")
    unknown = [name for name in names if name not in AUTOMATIC_FIXES or not AUTOMATIC_FIXES[name].call]
    if unknown:
        raise argparse.ArgumentTypeError("{}: no solution that can be applied by a call".format(", ".join(unknown)))
    return names


def _parse_steps(text):
    """Return (first, end) of "FIRST:END"; either may be left out."""
    first, colon, end = text.partition(":")
    try:
        steps = int(first or 0), int(end or 1 << 31) if colon else int(first) + 1
    except ValueError:
        raise argparse.ArgumentTypeError("{} is not FIRST:END".format(text))
    if not 0 <= steps[0] < steps[1]:
        raise argparse.ArgumentTypeError("{} holds no step".format(text))
    return steps


class _TwoLineParser(argparse.ArgumentParser):
    """A parser that prints two lines for wrong usage and exits."""

    def error(self, message):
        print_error(message, "see --help")
        sys.exit(errors.EXIT_USAGE)


def diff(argv):
    parser = _TwoLineParser(prog="python -m tfdeterminism.trace diff", description="Name the first op that differs.")
    parser.add_argument("trace", nargs="+", help="what `run --out` wrote: a folder or one file of it")
    parser.add_argument("--json", action="store_true", help="for machines")
    return parser.parse_args(argv)


def locate(argv):
    parser = _TwoLineParser(prog="python -m tfdeterminism.trace locate", description="Name the culprit of a program.")
    parser.add_argument("--max-runs", type=_parse_run_count, default=5, help="runs at most at each level (default 5)")
    parser.add_argument("--keep-traces", metavar="FOLDER", help="keep the traces there")
    parser.add_argument("--fix", action="store_true",
                        help="then run it with the advice applied: does it repeat itself, and how long does it take?")
    parser.add_argument("--trace-only", action="store_true",
                        help="compare traces only: take no kind of nondeterminism away to prove the cause")
    parser.add_argument("--steps", type=_parse_step_count, metavar="N",
                        help="end each run after so many training steps")
    parser.add_argument("--agree-runs", type=_parse_run_count, default=0, metavar="N",
                        help="runs with a pin that must agree, at least (default: 3 or more, by how often runs differ)")
    parser.add_argument("--vary-env", type=_parse_vary, metavar="NAME=VALUE,VALUE...",
                        help="an environment variable that each run gets with the next of these values")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="-- train.py ARGS")
    return parser.parse_args(argv)


def _parse_vary(text):
    """Return (name, values) of "NAME=VALUE,VALUE"."""
    name, _, values = text.partition("=")
    if not name or "," not in values:
        raise argparse.ArgumentTypeError("{} is not NAME=VALUE,VALUE".format(text))
    return name, values.split(",")


def _parse_step_count(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError("{} is no number of steps: one at least".format(text))
    return int(text)


def _parse_run_count(text):
    if not text.isdigit() or int(text) < 2:
        raise argparse.ArgumentTypeError("{} is no number of runs: two at least".format(text))
    return int(text)


def replay(argv):
    parser = argparse.ArgumentParser(prog="python -m tfdeterminism.trace replay")
    parser.add_argument("file", help="a capture-*.npz beside a trace")
    parser.add_argument("--repeats", type=int, default=30)
    return parser.parse_args(argv)
