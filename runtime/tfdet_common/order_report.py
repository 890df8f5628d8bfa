"""The proofs in the virtual GPU's report (VGPU_REPORT) under VGPU_CHECK=order, by kernel."""

import json
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type comments alone
    from typing import Iterable, Iterator  # noqa: F401

# Reasons why nothing is proved, beside those that the virtual GPU reports (vgpu/src/analysis/order/unproved_reason.h):
# the process launched no kernel; the report or the record was full and leaves something out; the runs differed although
# every launch is proved.
NO_KERNEL, LEFT_OUT, RUNS_DIFFER = "no_kernel", "left_out", "runs_differ"


class KernelLaunches(object):
    """All launches of one kernel.

    Attributes:
        kernel: its name in the binary.
        launches: their number.
        proved: the number of launches for which every order of execution is proved to leave the same bytes.
        reasons: why the others are not proved: {(reason, lines): launches}; lines: of PTX, or offsets in machine code.
        positions: of each reason, where its first launch met: [{function, line, source}], source: such as ["a.cu:3"],
            the line of the instruction before those at which it was inlined; [] if the code does not say it.
        rules: the names of the rules that proved launches; a rule accepts accesses whose order does not matter.
        codes: what ran, "ptx" or machine code such as "sm_80".
    """

    def __init__(self, kernel):
        # type: (str) -> None
        self.kernel = kernel
        self.launches = self.proved = 0
        self.reasons = Counter()  # type: Counter[tuple[str, tuple[int, ...]]]
        self.positions = {}  # type: dict[tuple[str, tuple[int, ...]], list[dict]]
        self.rules = set()  # type: set[str]
        self.codes = set()  # type: set[str]

    @property
    def is_proved(self):
        # type: () -> bool
        return self.proved == self.launches

    def ranked_reasons(self):
        # type: () -> list[tuple[tuple[str, tuple[int, ...]], int]]
        """The items of `reasons`, the most frequent first; equally frequent ones sorted."""
        return sorted(self.reasons.items(), key=lambda item: (-item[1], item[0]))

    def add(self, order, code=None):
        # type: (dict, str | None) -> None
        """Add one launch. order, code: these fields of its line in the report; code: None if the launch was refused."""
        self.codes.update([code] if code else [])
        reasons = {}
        for reason in order["reasons"]:
            reasons.setdefault((reason["reason"], tuple(sorted(set(reason["lines"])))), reason["positions"])
        if order["proved"] is not (not reasons):
            raise ValueError("a launch of {} is proved for a reason, or not proved without one".format(self.kernel))
        self.launches += 1
        self.proved += not reasons
        self.reasons.update(reasons.keys())
        for key, positions in reasons.items():
            self.positions.setdefault(key, positions)
        if not reasons:
            self.rules.update(order["rules"])


class OrderReport(object):
    """The proof of everything that one process did on the device.

    Attributes:
        kernels: {name: KernelLaunches}, in the order of their first launch.
        host: {(operation, reason): times}: copies, fills and calls that end the proof.
    """

    def __init__(self):
        # type: () -> None
        self.kernels = {}  # type: dict[str, KernelLaunches]
        self.host = Counter()  # type: Counter[tuple[str, str]]

    @property
    def is_proved(self):
        # type: () -> bool
        return bool(self.kernels) and not self.host and all(kernel.is_proved for kernel in self.kernels.values())

    def add(self, line):
        # type: (dict) -> None
        """Add one line, parsed: of a launch, of a copy or fill, of a CPU fallback, or of what the report leaves out.

        A CPU fallback is a call of a vendor library, such as cuBLAS, that is computed on the CPU.
        """
        if "kernel" in line:
            kernel = self.kernels.setdefault(line["kernel"], KernelLaunches(line["kernel"]))
            kernel.add(line["order"], line.get("code"))
        elif "left_out" in line:
            self.host["report", LEFT_OUT] += 1
        elif "cpu_fallback" in line:
            self.host[line["cpu_fallback"], "cpu_fallback"] += 1
        else:
            reasons = {reason["reason"] for reason in line["order"]["reasons"]}
            # A CPU fallback has a line of its own, which names its call.
            self.host.update((line["operation"], reason) for reason in reasons - {"cpu_fallback"})


def read(path):
    # type: (str) -> OrderReport
    """Read a report.

    Raises:
        ValueError: it is truncated or contains no orders; nothing is proved.
        OSError: it does not exist, or cannot be read.
    """
    report = OrderReport()
    with open(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                report.add(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ValueError("line {}: {}: {}".format(number, type(error).__name__, error))
    return report
