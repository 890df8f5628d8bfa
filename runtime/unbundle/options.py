"""The command line of unbundle.py.

A case is one runnable form of a source, which is a known source of nondeterminism. A solution makes a source
deterministic; its control is the same case without it. A cell is an environment, device, source and solution.
"""

import argparse

from tfdet_common.defaults import BUNDLE_GPU_DEFAULTS, RUN_DEFAULTS


def parse(argv):
    parser = argparse.ArgumentParser(description="Check, unpack and run this bundle of tfdet.")
    commands = parser.add_subparsers(dest="command", metavar="doctor | unpack | run")
    for name, text in (
        ("doctor", "check what this host has and what is missing"),
        ("unpack", "check the parts and unpack"),
        ("run", "run the suite, the most valuable cells first"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("--target", metavar="FOLDER", help="unpack here (default: a folder beside this script)")
        command.add_argument("--device", choices=["gpu", "cpu"], help="default: what the bundle was made for")
        if name == "run":
            run_options(command)
    options = parser.parse_args(argv)
    if options.command is None:
        parser.error("a command is required: doctor, unpack or run")
    return options


def run_options(parser):
    parser.add_argument("--source", action="append", metavar="ID", help="only this source; may be given again")
    parser.add_argument(
        "--solution", action="append", metavar="KEY", help="only this solution, and its control; may be given again"
    )
    parser.add_argument(
        "--case", action="append", metavar="PATTERN",
        help="only cases of such a name, * for anything: '*-compiled'; may be given again"
    )
    parser.add_argument(
        "--time-budget", type=positive, metavar="MINUTES",
        help="begin no case after so many minutes; the same command resumes"
    )
    parser.add_argument("--repeats", type=int, help=default_text("repeats in one process", "repeats"))
    parser.add_argument("--processes", type=int, help=default_text("fresh processes", "processes"))
    parser.add_argument(
        "--timeout", type=positive, default=RUN_DEFAULTS.seconds, help="seconds for one process of a case (%(default)g)"
    )
    parser.add_argument("--memory", type=int, help=default_text("MiB for one process of a case", "mebibytes"))
    parser.add_argument(
        "--no-contention", action="store_true",
        help="add no load beside a case: for several suites on one GPU, which are contention enough"
    )
    parser.add_argument("--out", default="records.jsonl", help="file for the records (default: records.jsonl)")


def default_text(description, name):
    """Return the help of an option with its defaults: `name` is a field of RunParameters."""
    return "{} (default: GPU {}, CPU {})".format(
        description, getattr(BUNDLE_GPU_DEFAULTS, name), getattr(RUN_DEFAULTS, name))


def positive(text):
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("{} is not a positive number".format(text))
    return value
