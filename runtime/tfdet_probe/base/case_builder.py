"""What a case function receives: inputs from a fixed seed, and constructors of the kinds of computation."""

import numpy as np


class Computation(object):
    """What one repeat of a case computes.

    Attributes:
        kind: 'forward' and 'gradient' are built once and run often; 'program' is built for each repeat, so its state is
            fresh; 'samples' gets sample inputs that the framework generates; 'host' is plain Python, returning arrays.
        function: of the inputs; of nothing for 'program' and 'host'; of the samples for 'samples'.
        inputs: NumPy arrays.
        wrt: the indices of the inputs that a 'gradient' is taken to.
        upstream: (shape, dtype) -> the upstream gradient of an output, as a NumPy array.
        generate: (device) -> the samples.
        launch: the Launch of its ranks; None for a case of one process.
    """

    def __init__(self, kind, function, inputs=(), wrt=(), upstream=None, generate=None):
        self.kind = kind
        self.function = function
        self.inputs = list(inputs)
        self.wrt = list(wrt)
        self.upstream = upstream
        self.generate = generate
        self.launch = None  # type: Launch | None


class Launch(object):
    """How the ranks of a case are started.

    Attributes:
        launcher: a name of tfdet_probe.launchers.
        number: of ranks.
        variables: environment variables of all ranks.
    """

    def __init__(self, launcher, number, variables):
        # type: (str, int, dict[str, str]) -> None
        self.launcher = launcher
        self.number = number
        self.variables = variables


class CaseBuilder(object):
    """Builds the inputs and the Computation of a case; the parameter `make` of a case function.

    Args:
        options: of the solution, see option().
        seed: of all random inputs.
        rank: of this process, for a case of several: each rank has random inputs of its own.
    """

    def __init__(self, options=None, seed=20191024, rank=0):
        self.seed = seed
        self.rank = rank
        self._options = options or {}
        self._random = np.random.RandomState(seed + rank)

    def option(self, name, default):
        # type: (str, object) -> object
        """A setting that a solution may change, such as workers=1."""
        return self._options.get(name, default)

    def uniform(self, shape, dtype="float32", low=-1.0, high=1.0):
        # type: (tuple[int, ...] | int, str, float, float) -> np.ndarray
        """Random numbers, uniform in [low, high)."""
        return self._random.uniform(low, high, shape).astype(dtype)

    def integers(self, low, high, shape, dtype="int32"):
        # type: (int, int, tuple[int, ...] | int, str) -> np.ndarray
        """Random integers, uniform in [low, high)."""
        return self._random.randint(low, high, shape).astype(dtype)

    def forward(self, function, inputs):
        # type: (object, list) -> Computation
        """The outputs of function(*inputs)."""
        return Computation("forward", function, inputs)

    def gradient(self, function, inputs, wrt):
        # type: (object, list, list[int]) -> Computation
        """The gradients of function(*inputs) to inputs[i] for i in wrt.

        The upstream gradient is random: with a gradient of ones many sums need no rounding.
        """
        return Computation("gradient", function, inputs, wrt, self.upstream)

    def upstream(self, shape, dtype):
        # type: (tuple[int, ...] | list[int], np.dtype | type | str) -> np.ndarray
        """A random upstream gradient: the same in every process, independent of earlier inputs."""
        return np.random.RandomState(self.seed + 1).uniform(-1.0, 1.0, shape).astype(dtype)

    def samples(self, generate, function):
        # type: (object, object) -> Computation
        """The outputs of function(samples), where samples = generate(device), with all random generators seeded."""
        return Computation("samples", function, generate=generate, upstream=self.upstream)

    def program(self, function):
        # type: (object) -> Computation
        """The tensors of function(), built for each repeat."""
        return Computation("program", function)

    def host(self, function):
        # type: (object) -> Computation
        """The arrays of function(), which is plain Python."""
        return Computation("host", function)

    def ranks(self, launcher, number, computation, variables=None):
        # type: (str, int, Computation, dict[str, str] | None) -> Computation
        """The computation, in `number` processes that the launcher starts: the outputs of all ranks are compared.

        Args:
            launcher: a name of tfdet_probe.launchers, such as 'horovodrun'.
            number: of ranks.
            computation: what each rank computes.
            variables: environment variables of all ranks.
        """
        computation.launch = Launch(launcher, number, variables or {})
        return computation
