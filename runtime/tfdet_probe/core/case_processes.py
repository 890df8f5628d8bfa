"""Run one case in fresh processes, each a fork of this one."""

import functools
import shutil
import tempfile
from typing import TYPE_CHECKING

from . import child
from .child_job import ChildJob
from .fork_server import in_child

if TYPE_CHECKING:  # for type comments alone
    from typing import Any, Sequence  # noqa: F401

    from .child_job import Limits, RunTarget  # noqa: F401
    from .registry import Case  # noqa: F401


def run_case(case, solution, target, repeats, processes, limits, determinism_variables=(), contention=False,
             proves=False):
    # type: (Case, dict[str, Any], RunTarget, int, int, Limits, Sequence[str], bool, bool) -> list[dict[str, Any]]
    """Run one case in fresh processes, one after another, until the first error.

    Args:
        case: the case.
        solution: its entry of the plan, see core.plan.
        target: framework and device.
        repeats: in each process.
        processes: how many.
        limits: of each process.
        determinism_variables: environment variables to unset before the solution's are set.
        contention: keep the device busy beside every process but the first.
        proves: whether the device has to prove that no order of execution changes what the first process computes.

    Returns:
        The children's reports; one that failed is {"error": {kind, type, message, where}}.
    """
    directory = tempfile.mkdtemp(prefix="tfdet-")
    try:
        reports = []
        for process_index in range(processes):
            job = ChildJob(case, solution, target, repeats, process_index, limits, determinism_variables,
                           contention, proves=proves)
            main = functools.partial(child.main, job, directory)
            reports.append(in_child(main, directory, process_index, limits, target.framework))
            if "error" in reports[-1]:
                break
        return reports
    finally:
        shutil.rmtree(directory, ignore_errors=True)
