"""What a forked child does: apply the solution, run the case repeatedly, compare with the reference, report."""

import contextlib
import json
import os
import time
from typing import TYPE_CHECKING

from .. import launchers
from ..base.case_builder import CaseBuilder
from ..base.errors import UnsupportedError
from ..base.settings import SolutionSettings
from ..base.snapshot import Snapshot, max_difference
from . import contention, placement, proof, ranks
from .error_report import NoKernelError, classify, describe_error, refused_by_device
from .host import Host
from .registry import HOST_MODE

if TYPE_CHECKING:  # for type comments alone
    from ..base.case_builder import Computation  # noqa: F401
    from ..devices.base import Device  # noqa: F401
    from ..frameworks.base import Framework, Runner  # noqa: F401
    from .child_job import ChildJob  # noqa: F401

REFERENCE = "reference"  # written by process 0, read by the others


def main(job, directory):
    # type: (ChildJob, str) -> None
    """Run one ChildJob and write report-<process index>.json into `directory`.

    The report is {"error": ...}, or has these fields, with one entry for each repeat that differed from the reference:
    differed (numbers of the repeats), outputs (numbers of the outputs that differ), schedules; for every repeat:
    digests, seconds; over all repeats: ulp, absolute, the largest differences.  `reference` is the reference's digest;
    `devices`, `kernels`, `codes` (machine code or PTX), `fallback_calls`, `proof`, `contention`, `library` (by
    which ranks, the processes of one case, exchange tensors) become fields of the record.
    """
    try:
        report = _run_case(job, directory)
    except Exception as error:  # an exception of a case is its observation, not a failure of the suite
        report = {"error": refused_by_device(job.target.device, describe_error(job.target.framework, error))}
    _write_report(report, job, directory)


def _write_report(report, job, directory):
    path = os.path.join(directory, "report-{}.json".format(job.process_index))
    with open(path + ".part", "w") as out:
        json.dump(report, out)
    os.rename(path + ".part", path)


def _run_case(job, directory):
    framework, device = job.target
    proves = job.proves and job.process_index == 0
    if proves:
        device.begin_proof()
    settings = SolutionSettings(job.solution, framework)
    first = 1 + job.process_index * job.repeats
    # The schedules of the runs, None if the device has none.  Building a case may already run kernels.
    observed = [device.before_run(first if job.process_index else 0)]
    settings.apply(job.determinism_variables)
    computation = job.case.build(CaseBuilder(settings.options, rank=job.rank or 0))
    if computation.launch and job.rank is None:
        return ranks.run(job, directory, computation.launch, main)
    report = {"differed": [], "outputs": [], "schedules": [], "digests": [], "seconds": [], "ulp": 0, "absolute": 0.0}
    if computation.launch:
        report["library"] = launchers.load(computation.launch.launcher).join(framework)
    runner = make_runner(framework, device, computation, job.case.mode, settings)
    _check_same_inputs(runner.inputs(), job.process_index, os.path.join(directory, "inputs"))
    reference_path = os.path.join(directory, REFERENCE)
    if job.process_index == 0:
        reference = Snapshot.from_arrays(_first_run(runner, job, settings))
        if not reference.parts:
            raise ValueError("the case has no outputs: nothing to compare")
        reference.save(reference_path)
        report["reference"] = reference.digest
    else:
        reference = Snapshot.load(reference_path)
    with _contention(job, report):
        for repeat in range(job.repeats):
            observed.append(device.before_run(first + repeat))
            _repeat(runner, reference, repeat, observed[-1], report)
    if proves:
        report["proof"] = proof.describe(device.proof(), observed, bool(report["differed"]))
    if job.case.ops and job.process_index == 0:
        placements = _op_placements(runner, framework)
        report["devices"] = placement.check(job.case.ops, device.name, placements, framework.is_op,
                                            job.case.source in settings.replaced)
    if job.process_index == 0 and job.case.mode != HOST_MODE and device.launches_kernels:
        # A profiler may kill the process: a report with `whole` counts even if its process died.
        _write_report(dict(report, whole=True), job, directory)
        report["kernels"] = framework.kernels(runner.run)
    _check_device_complete(device)
    report["codes"], report["fallback_calls"] = device.codes(), device.fallback_calls()
    return report


def _check_same_inputs(digest, process_index, path):
    """Check that a framework generated the inputs of the first process: other inputs would look like a difference."""
    if digest is None:
        return
    if process_index == 0:
        with open(path, "w") as out:
            out.write(digest)
    with open(path) as first:
        if first.read() != digest:
            raise ValueError("its inputs are not those of the first process: nothing can be compared")


def _check_device_complete(device):
    """Raise UnsupportedError if the device skipped a call that it does not support: then no result counts."""
    unsupported = device.refusal()
    if unsupported:
        raise UnsupportedError(unsupported)


def make_runner(framework, device, computation, mode, settings):
    # type: (Framework, Device, Computation, str, SolutionSettings) -> Runner
    """The Runner of a case's computation."""
    if mode == HOST_MODE:
        return Host(computation, settings)
    return framework.prepare(computation, mode, device.name, settings)


def _first_run(runner, job, settings):
    """The first run: an op that rejects its arguments here has no kernel for them; later runs repeat its calls."""
    try:
        return runner.run()
    except Exception as error:
        case, framework = job.case, job.target.framework
        is_framework_gradient = not case.own_gradient and case.source not in settings.replaced
        op = framework.refused_by_gradient(error, case.ops) if is_framework_gradient else None
        if op and classify(framework, error) == "crashed" and runner.forward_succeeds():
            raise NoKernelError(framework, op, error)
        raise


@contextlib.contextmanager
def _contention(job, report):
    """Keep the device busy, except for the first process, whose run times are recorded."""
    if not job.contention or job.process_index == 0:
        yield
        return
    with contention.keep_busy(job.target.device) as load:
        report["contention"] = load
        yield


def _op_placements(runner, framework):
    try:
        return runner.op_placements()
    except (AttributeError, ImportError) as error:
        # A fault of the probe: it must not be reported as an op that the framework lacks.
        raise RuntimeError("the probe cannot ask this {} where ops ran: {}".format(framework.title, error))


def _repeat(runner, reference, repeat, schedule, report):
    start = time.perf_counter()
    arrays = runner.run()
    report["seconds"].append(time.perf_counter() - start)
    result = Snapshot.from_arrays(arrays)
    report["digests"].append(result.digest)
    if result.digest == reference.digest:
        return
    report["differed"].append(repeat)
    report["outputs"].append([number for number, (first, second) in enumerate(zip(reference.parts, result.parts))
                              if first != second])
    if schedule:
        report["schedules"].append(schedule)
    ulp, absolute = max_difference(reference, result)
    report["ulp"] = _larger_difference(report["ulp"], ulp)
    report["absolute"] = _larger_difference(report["absolute"], absolute)


def _larger_difference(first, second):
    """The larger of two differences; None (not comparable) if either is: a number would claim too much."""
    return None if first is None or second is None else max(first, second)
