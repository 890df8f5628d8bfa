"""The proof in a record: what one process did on the device, and by which rules no order of execution changes it.

A rule accepts accesses to memory whose order does not matter. The list `host` names the copies, fills and calls of the
host that end the proof, each with the reason.
"""

from typing import TYPE_CHECKING

from tfdet_common.order_report import LEFT_OUT, NO_KERNEL, RUNS_DIFFER

if TYPE_CHECKING:  # for type comments alone
    from tfdet_common.order_report import KernelLaunches, OrderReport  # noqa: F401

# What may vary under the proof: the schedule alone. Addresses and the number of multiprocessors are those of the run.
AXES = ("schedule",)
HOLDS_FOR = "input"  # the proof holds for the inputs that ran, not for every input of their shapes
# Sizes of a record's lists; MAX_LINES: lines of PTX, or offsets in machine code, that a reason names; MAX_NAME:
# characters of the name of a kernel or an operation.
MAX_KERNELS, MAX_HOST, MAX_REASONS, MAX_LINES, MAX_NAME, MAX_SCHEDULES = 128, 64, 16, 2, 600, 8


def describe(report, observed, differed=False):
    # type: (OrderReport, list[str], bool) -> dict[str, object]
    """The field `proof` of a record.

    Args:
        report: of the process.
        observed: the schedules under which it ran.
        differed: whether its runs did.  If every launch is proved, the runs had other inputs from the host, such as a
            random seed: then the case is not proved.

    Returns:
        {axes, holds_for, observed, kernels, host}.  It is a proof if there are kernels, all launches of each are
        proved, and `host` is empty; whoever reads it decides by that.  Kernels that are not proved come first, and what
        does not fit ends the proof.
    """
    kernels = sorted(report.kernels.values(), key=lambda kernel: kernel.is_proved)
    host = [{"operation": operation[:MAX_NAME], "reason": reason, "times": times}
            for (operation, reason), times in sorted(report.host.items())]
    if not kernels:
        host.append({"operation": "report", "reason": NO_KERNEL, "times": 1})
    if report.is_proved and differed:
        host.append({"operation": "runs", "reason": RUNS_DIFFER, "times": 1})
    if len(kernels) > MAX_KERNELS or len(host) >= MAX_HOST:
        host = host[:MAX_HOST - 1] + [{"operation": "record", "reason": LEFT_OUT, "times": 1}]
    return {"axes": list(AXES), "holds_for": HOLDS_FOR, "observed": observed[:MAX_SCHEDULES], "host": host,
            "kernels": [_kernel(kernel) for kernel in kernels[:MAX_KERNELS]]}


def _kernel(kernel):
    # type: (KernelLaunches) -> dict[str, object]
    return {"name": kernel.kernel[:MAX_NAME], "launches": kernel.launches, "proved": kernel.proved,
            "rules": sorted(kernel.rules),
            "reasons": [{"reason": reason, "lines": list(lines[:MAX_LINES]), "launches": launches}
                        for (reason, lines), launches in kernel.ranked_reasons()[:MAX_REASONS]]}
