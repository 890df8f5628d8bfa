"""The command line."""

import argparse

from tfdet_common.defaults import CARRIED_TO_GPU, RUN


def parse(argv):
    parser = argparse.ArgumentParser(description="Check, unpack and run this bundle of tfdet.")
    commands = parser.add_subparsers(dest="command", metavar="doctor | unpack | run")
    for name, text in (
        ("doctor", "what this host has, and what is missing"),
        ("unpack", "check the parts and unpack"),
        ("run", "run the suite, the most valuable cells first"),
    ):
        one = commands.add_parser(name, help=text, description=text)
        one.add_argument("--target", metavar="FOLDER", help="unpack here (default: a folder beside this script)")
        one.add_argument("--device", choices=["gpu", "cpu"], help="default: what the bundle was made for")
        if name == "run":
            run_options(one)
    options = parser.parse_args(argv)
    if options.command is None:
        parser.error("say what to do: doctor, unpack or run")
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
    parser.add_argument("--repeats", type=int, help=usually("repeats in one process", "repeats"))
    parser.add_argument("--processes", type=int, help=usually("fresh processes", "processes"))
    parser.add_argument(
        "--timeout", type=positive, default=RUN.seconds, help="seconds for one process of a case (%(default)g)"
    )
    parser.add_argument("--memory", type=int, help=usually("MiB for one process of a case", "mebibytes"))
    parser.add_argument(
        "--no-contention", action="store_true",
        help="leave the device alone: for several suites on one GPU, which are each other's company"
    )
    parser.add_argument("--out", default="records.jsonl", help="file for the records (default: records.jsonl)")


def usually(what, name):
    return "{} (default: GPU {}, CPU {})".format(what, getattr(CARRIED_TO_GPU, name), getattr(RUN, name))


def positive(text):
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("{} is not a positive number".format(text))
    return value
