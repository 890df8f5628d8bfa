"""What the probe asks of a framework.  A new one is a folder here whose package has an `Adapter`, a Framework.

The host, too, imports adapters, for their modes: the framework itself is imported inside their methods only.
"""

import re


class Framework(object):
    """One framework in this process.

    name: as plans and records call it.  title: as people do.  modes: of a case that computes with tensors, where it
    names none itself; `host`, plain Python, is a mode in every framework.
    """

    name = title = None
    modes = ()

    def before_import(self):
        """Called once before anybody imports the framework, in the process that the cases are forked from."""

    def started(self):
        """Does its runtime run in this process?  Whatever starts before the fork is shared by all cases."""
        raise NotImplementedError

    def describe(self):
        """{version, keras, cuda, cudnn}; None where it does not tell.  Called in a child."""
        raise NotImplementedError

    def visible(self, placement):
        """[{name, compute_capability}] of the devices with this placement that it sees.  Called in a child."""
        raise NotImplementedError

    def prepare(self, computation, mode, device, settings):
        """A Runner of a make.Computation.  mode: one of `modes`.  device: such as GPU:0.  settings: of the solution."""
        raise NotImplementedError

    def apply(self, call):
        """Make a solution's call, before the first op; the sources whose ops it replaced.  NotHere: it has no such."""
        raise NotImplementedError

    def seed(self, call, seed):
        """Set the seeds, as the solution with this call (or none) does."""
        raise NotImplementedError

    def kernels(self, run):
        """The sorted names of the GPU kernels that run() launches; None where nothing tells.  Never an error."""

    def is_op(self, name, op):
        """Is `name`, of Runner.placed(), the op that a case calls `op`?  `A|B`: versions differ in which they use."""
        return re.match("({})$".format(op), name) is not None

    def said(self, error):
        """What an exception says, without stacks."""
        return str(error)

    def classify(self, error):
        """'raises' (refused for determinism), 'unsupported' (no such op, kernel or switch here) or 'crashed'."""
        raise NotImplementedError

    def refused_by_gradient(self, error, ops):
        """The op of `ops` that refused what a gradient function of the framework itself handed it, or None."""


class Runner(object):
    """One computation, built in one mode."""

    def run(self):
        """Its outputs as NumPy arrays."""
        raise NotImplementedError

    def placed(self):
        """[(op type, device such as GPU:0)] of one run; None where there are no ops to ask for."""
        raise NotImplementedError

    def runs_forward(self):
        """Do the outputs come, and only their gradient does not?"""
        return False
