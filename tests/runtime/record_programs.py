"""Record programs, each in a fork of a process that has imported TensorFlow: python record_programs.py JOBS.

Runs in the environment. JOBS is a JSON file: a list of [output folder, arguments of `trace run`]. Importing
TensorFlow takes seconds, forking milliseconds. Prints one JSON line of exit codes, in the order of the jobs.
"""

import atexit
import io
import json
import os
import sys


def main(path):
    import tensorflow  # noqa: F401 (for the children)

    with io.open(path, encoding="utf-8") as source:
        jobs = json.load(source)
    print(json.dumps([_record(folder, arguments) for folder, arguments in jobs]))


def _record(folder, arguments):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        _child(folder, arguments)
    status = os.waitpid(child, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)


def _child(folder, arguments):
    import random

    import numpy

    from tfdeterminism.trace import run

    numpy.random.seed()  # a fork has its parent's generators, a process of its own would not
    random.seed()
    code = 70
    try:
        os.makedirs(folder)
        output = os.open(os.path.join(folder, "output.txt"), os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ["PROGRAM_STATE"] = os.path.join(os.path.dirname(folder), "state")
        code = run.main(["--out", os.path.join(folder, "trace")] + arguments)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1])
