"""Runs the unittest tests that standard input names, and says of each in a line of JSON how it went.

    python suite_worker.py [--beside PACKAGE=FOLDER] [--list MODULE ...]

--list: prints the names of the modules' tests instead.  --beside: modules of the installed PACKAGE are looked for in
FOLDER, too: a source tree that holds the tests of a package whose wheel leaves them out.  Runs in the Python of who is
tested, which may be an old one (3.6).
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
    """Modules of `package` are found in `folder`, too."""
    found = importlib.import_module(package)
    if folder not in found.__path__:
        found.__path__.append(folder)


def extend_for(name, beside):
    """So that the modules that lie beside the one that `name` begins with are found."""
    top, folder = beside
    extend(top, folder)
    for part in name[len(top) + 1 :].split("."):
        folder = os.path.join(folder, part)
        if not os.path.isdir(folder):
            return
        top += "." + part
        extend(top, folder)


def flat(tests):
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def names(module):
    """Of the module's tests; one alone, which then fails, where it cannot be imported."""
    try:
        found = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(module))
    except Exception:
        return [module + ".Module.imports"]
    # A test's id() may say more than its name: absl's tests with parameters do.  A class may have another name here.
    return [f"{type(one).__module__}.{type(one).__name__}.{one._testMethodName}" for one in flat(found)]


def run(name):
    """passed, skipped or failed, and why."""
    module, of_class, method = name.rsplit(".", 2)
    result = unittest.TestResult()
    try:
        unittest.TestSuite([getattr(importlib.import_module(module), of_class)(method)]).run(result)
    except Exception:  # a module that has none such; a refusal that comes between two lines of unittest's own
        return "failed", traceback.format_exc()
    wrong = result.errors + result.failures
    if wrong:
        return "failed", wrong[0][1]
    return ("skipped", result.skipped[0][1]) if result.skipped else ("passed", "")


def answer(name, device):
    """How it went, and what the device says: the calls that it refused, its launches, whether it still runs."""
    device.vgpu_clear_unsupported_calls()
    before = device.vgpu_launches()
    how, why = run(name)
    return {
        "how": how,
        "why": why,
        "refused": device.vgpu_unsupported_calls().decode().splitlines(),
        "launches": device.vgpu_launches() - before,
        "dead": device.cuCtxSynchronize() != 0,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--beside", type=lambda text: text.split("=", 1))
    parser.add_argument("--list", nargs="*")
    chosen = parser.parse_args()
    say = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what tests print is not for who reads the results
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
