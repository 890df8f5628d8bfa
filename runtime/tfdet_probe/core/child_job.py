"""What one child of a case runs, and on what."""

from typing import TYPE_CHECKING, NamedTuple

from ..devices.base import Device
from ..frameworks.base import Framework

if TYPE_CHECKING:  # for type comments alone
    from typing import Any, Sequence  # noqa: F401

    from .registry import Case  # noqa: F401

# What cases run on.
RunTarget = NamedTuple("RunTarget", [("framework", Framework), ("device", Device)])


class ChildJob(object):
    """What one child runs: one case under one solution; process_index 0 writes the outputs that others have to equal.

    solution: its entry of the plan, see core.plan.  determinism_variables: environment variables to unset before
    those of the solution are set.  contention: keep the device busy beside every process but the first.
    limits: of each rank, if the case has several.  rank: None in a process that is no rank.
    proves: whether the device has to prove process 0 independent of the order of execution, see Device.proof.
    """

    def __init__(self, case, solution, target, repeats, process_index, limits, determinism_variables=(),
                 contention=False, rank=None, proves=False):
        # type: (Case, dict[str, Any], RunTarget, int, int, Limits, Sequence[str], bool, int | None, bool) -> None
        self.case = case
        self.solution = solution
        self.target = target
        self.repeats = repeats
        self.process_index = process_index
        self.determinism_variables = determinism_variables
        self.contention = contention
        self.limits = limits
        self.rank = rank
        self.proves = proves

    def as_rank(self, rank):
        # type: (int) -> ChildJob
        """The same job, of one rank."""
        return ChildJob(self.case, self.solution, self.target, self.repeats, self.process_index, self.limits,
                        self.determinism_variables, self.contention, rank)


class Limits(object):
    """The limits of one child: seconds of wall clock, MiB of resident memory."""

    def __init__(self, seconds, mebibytes):
        # type: (float, int) -> None
        self.seconds = seconds
        self.mebibytes = mebibytes
