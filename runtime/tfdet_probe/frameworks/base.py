"""What the probe asks of a framework.  A new one is a folder here whose package has an `Adapter`, a Framework.

The host, too, imports adapters, for their modes: the framework itself is imported inside their methods only.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type comments alone: the host has no use for what these import
    from typing import Callable, Iterable, Pattern, Sequence  # noqa: F401

    import numpy as np  # noqa: F401

    from tfdet_probe.core.make import Computation  # noqa: F401
    from tfdet_probe.core.settings import Settings  # noqa: F401


_MOST_KERNELS = 12  # names that a record keeps
_LONGEST = 200  # characters of one


class Framework(object):
    """One framework in this process.

    name: as plans and records call it.  title: as people do.  modes: of a case that computes with tensors, where it
    names none itself; `host`, plain Python, is a mode in every framework.
    """

    name = title = ""
    modes = ()  # type: tuple[str, ...]

    def before_import(self):
        # type: () -> None
        """Called once before anybody imports the framework, in the process that the cases are forked from."""

    def before_fork(self, modes):
        # type: (Iterable[str]) -> None
        """Called once after the import, with the modes of all cases that are to run."""

    def started(self):
        # type: () -> bool
        """Does its runtime run in this process?  Whatever starts before the fork is shared by all cases."""
        raise NotImplementedError

    def describe(self):
        # type: () -> dict[str, str | None]
        """{version, keras, cuda, cudnn}; None where it does not tell.  Called in a child."""
        raise NotImplementedError

    def visible(self, placement):
        # type: (str) -> list[dict[str, str | None]]
        """[{name, compute_capability}] of the devices with this placement that it sees.  Called in a child."""
        raise NotImplementedError

    def prepare(self, computation, mode, device, settings):
        # type: (Computation, str, str, Settings) -> Runner
        """A Runner of a make.Computation.  mode: one of `modes`.  device: such as GPU:0.  settings: of the solution."""
        raise NotImplementedError

    def apply(self, call):
        # type: (str) -> Iterable[str] | None
        """Make a solution's call, before the first op; the sources whose ops it replaced.  NotHere: it has no such."""
        raise NotImplementedError

    def seed(self, call, seed):
        # type: (str | None, int) -> None
        """Set the seeds, as the solution with this call (or none) does."""
        raise NotImplementedError

    def kernels(self, run):
        # type: (Callable[[], object]) -> list[str] | None
        """The sorted names of the GPU kernels that run() launches; None where nothing tells.  Never an error."""

    def is_op(self, name, op):
        # type: (str, str) -> bool
        """Is `name`, of Runner.placed(), the op that a case calls `op`?  `A|B`: versions differ in which they use."""
        return re.match("({})$".format(op), name) is not None

    def said(self, error):
        # type: (BaseException) -> str
        """What an exception says, without stacks."""
        return str(error)

    def classify(self, error):
        # type: (BaseException) -> str
        """'raises' (refused for determinism), 'unsupported' (no such op, kernel or switch here) or 'crashed'."""
        raise NotImplementedError

    def refused_by_gradient(self, error, ops):
        # type: (BaseException, Sequence[str]) -> str | None
        """The op of `ops` that refused what a gradient function of the framework itself handed it, or None."""


class Runner(object):
    """One computation, built in one mode."""

    def run(self):
        # type: () -> list[np.ndarray]
        """Its outputs as NumPy arrays."""
        raise NotImplementedError

    def placed(self):
        # type: () -> list[tuple[str, str]] | None
        """[(op type, device such as GPU:0)] of one run; None where there are no ops to ask for."""
        raise NotImplementedError

    def inputs(self):
        # type: () -> str | None
        """A digest of inputs that the framework made; None where the case made them, from a seed."""

    def runs_forward(self):
        # type: () -> bool
        """Do the outputs come, and only their gradient does not?"""
        return False


def launched(names):
    # type: (Iterable[str]) -> list[str]
    """What a record keeps of what a profiler saw: kernels, sorted, without what only moved memory."""
    kernels = {name for name in names if name and not name.lower().startswith(("memcpy", "memset"))}
    return sorted("".join(c if c.isprintable() else "?" for c in name)[:_LONGEST] for name in kernels)[:_MOST_KERNELS]


def by_words(error, refusal, no_kernel):
    # type: (BaseException, Pattern[str], Pattern[str]) -> str
    """Framework.classify, where the words of an exception tell all: the patterns of its refusals, of what it lacks."""
    if refusal.search(str(error)):
        return "raises"
    if isinstance(error, NotImplementedError) or no_kernel.search(str(error)):
        return "unsupported"
    return "crashed"
