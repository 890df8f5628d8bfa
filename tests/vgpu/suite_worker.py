"""A worker that runs the unittest tests named on standard input, and writes a line of JSON for each result.

    python suite_worker.py [--beside PACKAGE=FOLDER] [--list MODULE ...]

--list: print the names of the modules' tests instead.  --beside: look for modules of the installed PACKAGE in FOLDER,
too: a source tree with the tests of a package whose wheel leaves them out.  The worker runs in the interpreter of the
tested package, which may be an old one (3.6).
"""

import argparse
import ctypes
import importlib
import json
import os
import sys
import traceback
import unittest


def extend(package, folder):
    """Make modules in `folder` importable as modules of `package`."""
    module = importlib.import_module(package)
    if folder not in module.__path__:
        module.__path__.append(folder)


def extend_for(name, extension):
    """Make the modules of a source tree (package, folder) importable that the test `name` needs."""
    top, folder = extension
    extend(top, folder)
    for part in name[len(top) + 1 :].split("."):
        folder = os.path.join(folder, part)
        if not os.path.isdir(folder):
            return
        top += "." + part
        extend(top, folder)


def flatten_suite(tests):
    """Yield the tests of nested suites."""
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            yield from flatten_suite(test)
        else:
            yield test


def names(module):
    """Return the names of a module's tests, or of one placeholder that fails if the module cannot be imported."""
    try:
        tests = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(module))
    except Exception:
        return [module + ".Module.imports"]
    # A test's id() may say more than its name: absl's tests with parameters do.  A class may have another name here.
    return [f"{type(test).__module__}.{type(test).__name__}.{test._testMethodName}" for test in flatten_suite(tests)]


def run(name):
    """Run a test; return ("passed", "skipped" or "failed", the reason)."""
    module, of_class, method = name.rsplit(".", 2)
    result = unittest.TestResult()
    try:
        unittest.TestSuite([getattr(importlib.import_module(module), of_class)(method)]).run(result)
    except Exception:  # the test does not exist, or the error is raised in unittest's own code
        return "failed", traceback.format_exc()
    wrong = result.errors + result.failures
    if wrong:
        return "failed", wrong[0][1]
    return ("skipped", result.skipped[0][1]) if result.skipped else ("passed", "")


def answer(name, device):
    """Run a test; return its outcome, the calls that the device refused, its launches, and whether it is dead."""
    device.vgpu_clear_unsupported_calls()
    launches_before = device.vgpu_launches()
    outcome, reason = run(name)
    return {
        "how": outcome,
        "why": reason,
        "refused": device.vgpu_unsupported_calls().decode().splitlines(),
        "launches": device.vgpu_launches() - launches_before,
        "dead": device.cuCtxSynchronize() != 0,
    }


def main():
    """Answer each test that is named on standard input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--beside", type=lambda text: text.split("=", 1))
    parser.add_argument("--list", nargs="*")
    chosen = parser.parse_args()
    say = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # keep the output of tests out of the results
    device = ctypes.CDLL("libcuda.so.1")
    device.vgpu_unsupported_calls.restype = ctypes.c_char_p
    device.vgpu_launches.restype = ctypes.c_uint64
    for name in sys.stdin if chosen.list is None else chosen.list:
        name = name.strip()
        if chosen.beside:
            extend_for(name, chosen.beside)
        if "absl" in sys.modules:
            importlib.import_module("absl.flags").FLAGS.mark_as_parsed()  # tests ask for their temporary folder by one
        lines = [json.dumps(answer(name, device))] if chosen.list is None else names(name)
        say.write("".join(line + "\n" for line in lines))
        say.flush()


if __name__ == "__main__":
    main()
