"""One fresh runtime: apply the solution, run the case, compare with the reference, report."""

import contextlib
import json
import os
import time
import traceback
from typing import TYPE_CHECKING

from . import contention, placement
from .errors import NoKernel, Unsupported, classify
from .host import Host
from .make import Make
from .registry import HOST
from .settings import Settings
from .snapshot import Snapshot, distance

if TYPE_CHECKING:  # for type comments alone
    from ..frameworks.base import Framework  # noqa: F401
    from .launch import Job  # noqa: F401

REFERENCE = "reference"  # written by process 0, read by the others


def main(job, directory):
    # type: (Job, str) -> None
    """Run `job` (see launch.Job) and leave report-<process index>.json in `directory`."""
    try:
        report = _observe(job, directory)
    except Exception as error:  # whatever a case raises is its observation, not our failure
        report = {"error": _refused(job.place.device, describe(job.place.framework, error))}
    _leave(report, job, directory)


def _leave(report, job, directory):
    path = os.path.join(directory, "report-{}.json".format(job.process_index))
    with open(path + ".part", "w") as out:
        json.dump(report, out)
    os.rename(path + ".part", path)


def describe(framework, error):
    # type: (Framework, BaseException) -> dict[str, str | None]
    """An exception as {kind, type, message, where}."""
    lines = framework.said(error).strip().splitlines() or [""]
    frames = traceback.extract_tb(error.__traceback__)
    where = frames[-1] if frames else None
    return {"kind": classify(framework, error), "type": type(error).__name__, "message": printable(lines[0])[:400],
            "where": "{}:{}".format(os.path.basename(where[0]), where[1]) if where else None}


def _refused(device, error):
    """A crash is none where the device was asked for what it does not have."""
    what = device.refusal() if error["kind"] == "crashed" else None
    if not what:
        return error
    message = error["message"] if what in error["message"] else "{}: {}".format(what, error["message"])
    return dict(error, kind="unsupported", message=printable(message)[:400])


def printable(text):
    # type: (str) -> str
    """Without control characters: a terminal obeys them."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _observe(job, directory):
    framework, device = job.place
    settings = Settings(job.solution, framework)
    first = 1 + job.process_index * job.repeats
    device.turn(first if job.process_index else 0)  # building a case may already run kernels
    settings.apply(job.determinism_variables)
    computation = job.case.build(Make(settings.options))
    runner = _runner(job, computation, settings)
    _same_inputs(runner.inputs(), job.process_index, os.path.join(directory, "inputs"))
    reference_path = os.path.join(directory, REFERENCE)
    report = {"differed": [], "turns": [], "digests": [], "seconds": [], "ulp": 0, "absolute": 0.0}
    if job.process_index == 0:
        reference = Snapshot.of(_first(runner, job, settings))
        if not reference.parts:
            raise ValueError("the case has no outputs: nothing to compare")
        reference.save(reference_path)
        report["reference"] = reference.digest
    else:
        reference = Snapshot.load(reference_path)
    with _company(job, report):
        for repeat in range(job.repeats):
            _repeat(runner, reference, repeat, device.turn(first + repeat), report)
    if job.case.ops and job.process_index == 0:
        report["devices"] = placement.check(job.case.ops, device.name, _placed(runner, framework), framework.is_op,
                                            job.case.source in settings.replaced)
    if job.process_index == 0 and job.case.mode != HOST and device.launches_kernels:
        _leave(dict(report, whole=True), job, directory)  # a profiler that dies must not take it along
        report["kernels"] = framework.kernels(runner.run)
    _nothing_refused(device)
    return report


def _same_inputs(digest, process_index, path):
    """Where a framework makes the inputs, no process may have been given others: that would pass for a difference."""
    if digest is None:
        return
    if process_index == 0:
        with open(path, "w") as out:
            out.write(digest)
    with open(path) as first:
        if first.read() != digest:
            raise ValueError("its inputs are not those of the first process: nothing can be compared")


def _nothing_refused(device):
    """What a device was asked for and does not have may have been left out in silence: then no result counts."""
    what = device.refusal()
    if what:
        raise Unsupported(what)


def _runner(job, computation, settings):
    if job.case.mode == HOST:
        return Host(computation, settings)
    return job.place.framework.prepare(computation, job.case.mode, job.place.device.name, settings)


def _first(runner, job, settings):
    """The first run: only here does a refusal mean that there is no kernel, for later runs ask the same again."""
    try:
        return runner.run()
    except Exception as error:
        case, framework = job.case, job.place.framework
        theirs = not case.own_gradient and case.source not in settings.replaced
        op = framework.refused_by_gradient(error, case.ops) if theirs else None
        if op and classify(framework, error) == "crashed" and runner.runs_forward():
            raise NoKernel(framework, op, error)
        raise


@contextlib.contextmanager
def _company(job, report):
    """The first process is left in peace: its times count."""
    if not job.contention or job.process_index == 0:
        yield
        return
    with contention.on(job.place.device) as what:
        report["contention"] = what
        yield


def _placed(runner, framework):
    try:
        return runner.placed()
    except (AttributeError, ImportError) as error:
        # Ours to mend: it must not pass for an op that this framework lacks.
        raise RuntimeError("the probe cannot ask this {} where ops ran: {}".format(framework.title, error))


def _repeat(runner, reference, repeat, turn, report):
    start = time.perf_counter()
    arrays = runner.run()
    report["seconds"].append(time.perf_counter() - start)
    result = Snapshot.of(arrays)
    report["digests"].append(result.digest)
    if result.digest == reference.digest:
        return
    report["differed"].append(repeat)
    if turn:
        report["turns"].append(turn)
    ulp, absolute = distance(reference, result)
    report["ulp"] = _worse(report["ulp"], ulp)
    report["absolute"] = _worse(report["absolute"], absolute)


def _worse(so_far, value):
    """None (no such distance) wins: a number would say more than was seen."""
    return None if so_far is None or value is None else max(so_far, value)
