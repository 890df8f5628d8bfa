"""The entry point of unbundle.py: parse the command line and execute the command."""

import os
import signal
import sys
import time

from unbundle.bundle import Bundle
from unbundle.check import require
from unbundle.doctor import checks, doctor
from unbundle.errors import BundleError
from unbundle.options import parse
from unbundle.run import run
from unbundle.unpack import unpack


def main(argv=None):
    started = time.time()
    options = parse(argv)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # runs every `finally`
    try:
        return execute(options, started)
    except BundleError as error:
        sys.stderr.write("tfdet: {}\n  {}\n".format(error.cause, error.advice))
        return error.code
    except KeyboardInterrupt:
        sys.stderr.write("tfdet: stopped\n  Finished records are saved; running again resumes from there.\n")
        return 130


def execute(options, started):
    """Execute the command `options.command`, and return the exit code.  started: when, as time.time() gives it."""
    bundle = Bundle(os.path.dirname(os.path.abspath(__file__)))
    try:
        import lzma  # noqa: F401  (some builds of Python lack it)
    except ImportError:
        raise BundleError(
            3, "this Python has no lzma module", "Use another Python: python{} unbundle.py".format(bundle["python"])
        )
    device = options.device or bundle["device"]
    target = options.target or os.path.join(bundle.folder, "unpacked-" + bundle["checksum"][:12])
    if options.command == "doctor":
        return doctor(bundle, device, target)
    if options.command == "run":
        options.device = device
        require(checks(bundle, device))  # before minutes are spent on unpacking
    unpack(bundle, target)
    if options.command == "unpack":
        sys.stdout.write(os.path.abspath(target) + "\n")
        return 0
    return run(bundle, os.path.abspath(target), options, started)
