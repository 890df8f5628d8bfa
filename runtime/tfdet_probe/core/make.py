"""What a case function is handed: inputs from a fixed seed, and the forms a case can take."""

import numpy as np


class Computation(object):
    """What one repeat does.

    kind: 'forward' and 'gradient' build once and run often; 'program' is built anew for each
    repeat (its state starts afresh); 'samples' is handed what the framework itself makes as inputs; 'host' is plain
    Python that returns arrays.
    """

    def __init__(self, kind, function, inputs=(), wrt=(), upstream=None, generate=None):
        self.kind = kind
        self.function = function
        self.inputs = list(inputs)
        self.wrt = list(wrt)
        self.upstream = upstream
        self.generate = generate


class Make(object):
    def __init__(self, options=None, seed=20191024):
        self.seed = seed
        self._options = options or {}
        self._random = np.random.RandomState(seed)

    def option(self, name, default):
        # type: (str, object) -> object
        """A setting that a solution may change, e.g. workers=1."""
        return self._options.get(name, default)

    def uniform(self, shape, dtype="float32", low=-1.0, high=1.0):
        # type: (tuple[int, ...] | int, str, float, float) -> np.ndarray
        return self._random.uniform(low, high, shape).astype(dtype)

    def integers(self, low, high, shape, dtype="int32"):
        # type: (int, int, tuple[int, ...] | int, str) -> np.ndarray
        return self._random.randint(low, high, shape).astype(dtype)

    def forward(self, function, inputs):
        # type: (object, list) -> Computation
        """The outputs of function(*inputs)."""
        return Computation("forward", function, inputs)

    def gradient(self, function, inputs, wrt):
        # type: (object, list, list[int]) -> Computation
        """The gradients of function(*inputs) to inputs[i] for i in wrt.

        The upstream gradient is random: a gradient of ones hides rounding.
        """
        return Computation("gradient", function, inputs, wrt, self.upstream)

    def upstream(self, shape, dtype):
        # type: (tuple[int, ...] | list[int], np.dtype | type | str) -> np.ndarray
        """An upstream gradient: the same for every process, independent of earlier draws."""
        return np.random.RandomState(self.seed + 1).uniform(-1.0, 1.0, shape).astype(dtype)

    def samples(self, generate, function):
        # type: (object, object) -> Computation
        """function(samples) -> tensors; generate(device) gives the samples, with all generators seeded."""
        return Computation("samples", function, generate=generate, upstream=self.upstream)

    def program(self, function):
        # type: (object) -> Computation
        """function() -> tensors, built anew for each repeat."""
        return Computation("program", function)

    def host(self, function):
        # type: (object) -> Computation
        """function() -> arrays, plain Python."""
        return Computation("host", function)
