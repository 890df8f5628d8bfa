"""Run Python programs, each in a fork of this process, which has imported their framework: python forking.py MODULE.

Runs in the environment. Importing a framework takes seconds, forking milliseconds. Each line of standard input is a
JSON list of jobs; for each line one JSON line comes back, the exit codes in the order of the jobs. A job has
"arguments" (what follows `python` on a command line), "output" (a folder for out.txt and err.txt), "folder" (to run in,
or null), "environment" (variables to set), "fresh" (true: a process of its own, no fork), "alone" (true: nothing runs
beside it), "seconds" (after which it is killed).
"""

import atexit
import importlib
import json
import os
import random
import runpy
import signal
import sys
import threading
import time

BESIDE = max(2, (os.cpu_count() or 2) // 2)  # jobs at the same time: TensorFlow has threads of its own
PAUSE = 0.02


def main():
    for name in [sys.argv[1]] + (["torch._dynamo"] if sys.argv[1] == "torch" else []):  # that optimizers import
        importlib.import_module(name)  # for the children

    for line in iter(sys.stdin.readline, ""):
        sys.stdout.write(json.dumps(_run(json.loads(line))) + "\n")
        sys.stdout.flush()


def _run(jobs):
    waiting, running, codes = list(range(len(jobs))), {}, {}
    while waiting or running:
        while waiting and _may_start(jobs[waiting[0]], [jobs[number] for number, _ in running.values()]):
            number = waiting.pop(0)
            running[_start(jobs[number])] = number, time.time() + jobs[number]["seconds"]
        for child, (number, deadline) in list(running.items()):
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                codes[number] = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
                del running[child]
            elif time.time() > deadline:
                os.kill(child, signal.SIGKILL)
        time.sleep(PAUSE)
    return [codes[number] for number in range(len(jobs))]


def _may_start(job, running):
    """Whether the job may start now, beside those that run."""
    if job["alone"] or any(other["alone"] for other in running):
        return not running
    return len(running) < BESIDE


def _start(job):
    child = os.fork()
    if not child:
        _end(_code_of(job))
    return child


def _code_of(job):
    """Run the job in this process; return the exit code that Python would end with."""
    try:
        _prepare_process(job)
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        sys.stderr.write("{}\n".format(stop.code))
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _end(code):
    """End as Python does, but without the seconds that it takes to free TensorFlow's modules."""
    threading._shutdown()
    try:
        atexit._run_exitfuncs()
    except BaseException:  # Python reports it, and its exit code stays
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _prepare_process(job):
    """Set the environment, folder and output of the job in the forked process, and start it."""
    os.environ.update(job["environment"])
    if job["folder"]:
        os.chdir(job["folder"])
    for number, name in enumerate([os.devnull, "out.txt", "err.txt"]):
        path = os.path.join(job["output"], name) if number else name
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY), number)
    arguments = job["arguments"]
    if job["fresh"]:
        os.execv(sys.executable, [sys.executable] + arguments)
    _seed()
    if arguments[0] == "-m":
        sys.path[0] = os.getcwd()
        sys.argv[:] = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        sys.argv[:] = arguments
        runpy.run_path(arguments[0], run_name="__main__")


def _seed():
    """Seed the generators anew: a fork inherits its parent's state, a fresh process does not."""
    import numpy

    numpy.random.seed()
    random.seed()


if __name__ == "__main__":
    main()
