"""The interface of a framework.  A new one is a folder here whose package has a class `Adapter`, a Framework.

A case is one runnable form of a source of nondeterminism, in one mode, such as eager. A solution is what makes the
source deterministic. A placement is the kind of device in the framework's names of devices: GPU of GPU:0.

The host imports adapters, too, for their modes; so they import the framework itself inside their methods only.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type comments alone: the host has no use for what these import
    from typing import Callable, Iterable, Pattern, Sequence  # noqa: F401

    import numpy as np  # noqa: F401

    from tfdet_probe.base.case_builder import Computation  # noqa: F401
    from tfdet_probe.base.settings import SolutionSettings  # noqa: F401


_MAX_KERNELS = 12  # names that a record lists
_MAX_NAME = 200  # characters


class Framework(object):
    """One framework in this process.

    Attributes:
        name: in plans and records.
        title: for people.
        modes: of a case that computes with tensors and names none itself; every framework also has the mode `host`,
            plain Python.
    """

    name = title = ""
    modes = ()  # type: tuple[str, ...]

    def own_allocations(self):
        # type: () -> dict[str, str]
        """Environment variables {name: value} with which each tensor is an allocation of the device.

        A seed of addresses (`tfdet run --placement`) then moves each one; by default frameworks divide a few large
        allocations.  Called before the import.
        """
        return {}

    def before_import(self):
        # type: () -> None
        """Called once before the framework is imported, in the process that forks the cases."""

    def before_fork(self, modes):
        # type: (Iterable[str]) -> None
        """Called once after the import, with the modes of all cases that are to run."""

    def started(self):
        # type: () -> bool
        """Whether the runtime runs in this process; if it starts before the fork, all cases share it."""
        raise NotImplementedError

    def describe(self):
        # type: () -> dict[str, str | None]
        """The versions {version, keras, cuda, cudnn}; None or absent if not reported.  Called in a child."""
        raise NotImplementedError

    def visible(self, placement):
        # type: (str) -> list[dict[str, str | None]]
        """The devices with this placement that it sees, [{name, compute_capability}].  Called in a child."""
        raise NotImplementedError

    def prepare(self, computation, mode, device, settings):
        # type: (Computation, str, str, SolutionSettings) -> Runner
        """Build a Runner of a computation.

        Args:
            computation: see base.case_builder.
            mode: one of `modes`.
            device: such as GPU:0.
            settings: of the solution.
        """
        raise NotImplementedError

    def apply(self, call):
        # type: (str) -> Iterable[str] | None
        """Make a solution's call, before the first op.

        Returns:
            The sources whose ops the call replaced.

        Raises:
            SolutionUnavailableError: the framework has no such call.
        """
        raise NotImplementedError

    def seed(self, call, seed):
        # type: (str | None, int) -> None
        """Set the seeds, in the way of the solution with this call (or none)."""
        raise NotImplementedError

    def kernels(self, run):
        # type: (Callable[[], object]) -> list[str] | None
        """The sorted names of the GPU kernels that run() launches; None without a working profiler.  Never raises."""

    def is_op(self, name, op):
        # type: (str, str) -> bool
        """Whether `name`, of Runner.op_placements(), is the op `op` of a case; `A|B`: versions use one or the other."""
        return re.match("({})$".format(op), name) is not None

    def error_text(self, error):
        # type: (BaseException) -> str
        """The message of an exception, without stack traces."""
        return str(error)

    def classify(self, error):
        # type: (BaseException) -> str
        """The kind of an exception: 'raises', 'unsupported' or 'crashed', see core.error_report.classify."""
        raise NotImplementedError

    def refused_by_gradient(self, error, ops):
        # type: (BaseException, Sequence[str]) -> str | None
        """The op of `ops` that rejected arguments from the framework's own gradient function, or None."""


class Runner(object):
    """One computation, built in one mode."""

    def run(self):
        # type: () -> list[np.ndarray]
        """Run once; returns the outputs as NumPy arrays."""
        raise NotImplementedError

    def op_placements(self):
        # type: () -> list[tuple[str, str]] | None
        """The ops of one run, [(op type, device such as GPU:0)]; None in a mode without ops."""
        raise NotImplementedError

    def inputs(self):
        # type: () -> str | None
        """The digest of inputs that the framework generated; None if the case generated them, from a seed."""

    def forward_succeeds(self):
        # type: () -> bool
        """Whether the outputs can be computed and only their gradient fails."""
        return False


def normalize_kernel_names(names):
    # type: (Iterable[str]) -> list[str]
    """A profiler's kernel names as a record lists them: sorted, without memory copies, at most 12."""
    kernels = {name for name in names if name and not name.lower().startswith(("memcpy", "memset"))}
    return sorted("".join(c if c.isprintable() else "?" for c in name)[:_MAX_NAME] for name in kernels)[:_MAX_KERNELS]


def classify_by_text(error, refusal, no_kernel):
    # type: (BaseException, Pattern[str], Pattern[str]) -> str
    """Classify an exception by its message, see Framework.classify.

    Args:
        error: the exception.
        refusal: matches messages that refuse nondeterminism.
        no_kernel: matches messages about a missing op or kernel.
    """
    if refusal.search(str(error)):
        return "raises"
    if isinstance(error, NotImplementedError) or no_kernel.search(str(error)):
        return "unsupported"
    return "crashed"
