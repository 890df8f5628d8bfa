"""One fresh runtime: apply the solution, run the case, compare with the reference, report."""

import contextlib
import json
import os
import time
import traceback

from . import contention, modes, placement, profile
from .errors import NoKernel, classify, refused_by_gradient, said
from .make import Make
from .snapshot import Snapshot, distance
from .solutions import Settings

REFERENCE = "reference"  # written by relaunch 0, read by the others


def main(job, directory):
    """Run `job` (see launch.Job) and leave report-<relaunch>.json in `directory`."""
    try:
        report = _observe(job, directory)
    except Exception as error:  # whatever a case raises is its observation, not our failure
        report = {"error": describe(error)}
    _leave(report, job, directory)


def _leave(report, job, directory):
    path = os.path.join(directory, "report-{}.json".format(job.relaunch))
    with open(path + ".part", "w") as out:
        json.dump(report, out)
    os.rename(path + ".part", path)


def describe(error):
    """An exception as {kind, type, message}."""
    lines = said(error).strip().splitlines() or [""]
    frames = traceback.extract_tb(error.__traceback__)
    where = frames[-1] if frames else None
    return {"kind": classify(error), "type": type(error).__name__, "message": printable(lines[0])[:400],
            "where": "{}:{}".format(os.path.basename(where[0]), where[1]) if where else None}


def printable(text):
    """Without control characters: a terminal obeys them."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _observe(job, directory):
    settings = Settings(job.solution)
    settings.apply(job.determinism_variables)
    computation = job.case.build(Make(settings.options))
    runner = modes.prepare(computation, job.case.mode, job.device_name, settings)
    reference_path = os.path.join(directory, REFERENCE)
    report = {"differed": [], "digests": [], "seconds": [], "ulp": 0, "absolute": 0.0}
    if job.relaunch == 0:
        reference = Snapshot.of(_first(runner, job.case, settings))
        if not reference.parts:
            raise ValueError("the case has no outputs: nothing to compare")
        reference.save(reference_path)
        report["reference"] = reference.digest
    else:
        reference = Snapshot.load(reference_path)
    with _company(job, report):
        for repeat in range(job.repeats):
            _repeat(runner, reference, repeat, report)
    if job.case.ops and job.relaunch == 0:
        report["devices"] = placement.check(job.case.ops, job.device_name, _placed(runner),
                                            job.case.source in settings.replaced)
    if job.relaunch == 0 and job.case.mode != "host" and "GPU" in job.device_name:
        _leave(dict(report, whole=True), job, directory)  # a profiler that dies must not take it along
        report["kernels"] = _kernels(runner)
    return report


def _first(runner, case, settings):
    """The first run: only here does a refusal mean that there is no kernel, for later runs ask the same again."""
    try:
        return runner.run()
    except Exception as error:
        theirs = not case.own_gradient and case.source not in settings.replaced
        op = refused_by_gradient(error, case.ops) if theirs else None
        if op and classify(error) == "crashed" and runner.runs_forward():
            raise NoKernel(op, error)
        raise


@contextlib.contextmanager
def _company(job, report):
    """The first process is left in peace: its times count."""
    if not job.contention or job.relaunch == 0:
        yield
        return
    with contention.on(job.device_name) as what:
        report["contention"] = what
        yield


def _kernels(runner):
    import tensorflow as tf
    return profile.kernels(tf, runner.run)


def _placed(runner):
    try:
        return runner.placed()
    except (AttributeError, ImportError) as error:
        # Ours to mend: it must not pass for an op that this TensorFlow lacks.
        raise RuntimeError("the probe cannot ask this TensorFlow where ops ran: {}".format(error))


def _repeat(runner, reference, repeat, report):
    start = time.perf_counter()
    arrays = runner.run()
    report["seconds"].append(time.perf_counter() - start)
    result = Snapshot.of(arrays)
    report["digests"].append(result.digest)
    if result.digest == reference.digest:
        return
    report["differed"].append(repeat)
    ulp, absolute = distance(reference, result)
    report["ulp"] = _worse(report["ulp"], ulp)
    report["absolute"] = _worse(report["absolute"], absolute)


def _worse(so_far, value):
    """None (no such distance) wins: a number would say more than was seen."""
    return None if so_far is None or value is None else max(so_far, value)
