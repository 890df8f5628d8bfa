"""Turn a computation into run() -> list of NumPy arrays: op by op, or compiled as one program."""

import re

import jax
import numpy as np

from tfdet_probe.frameworks.base import Runner

_OP = re.compile(r"\b(?:stablehlo|chlo)\.(\w+)")


def prepare(computation, mode, device, settings):
    """A Runner for this computation in this mode.  device: such as GPU:0.  settings: see core.settings.Settings."""
    kind, number = device.split(":")
    return _Runner(computation, mode == "jit", jax.devices(kind.lower())[int(number)], settings)


class _Runner(Runner):
    def __init__(self, computation, compiled, device, settings):
        self._device, self._settings = device, settings
        self._function, given = _whole(computation)
        self._inputs = [jax.device_put(value, device) for value in given]
        self._run = jax.jit(self._function) if compiled else self._function

    def run(self):
        self._settings.before_repeat()
        with jax.default_device(self._device):
            return [np.array(leaf) for leaf in jax.tree_util.tree_leaves(self._run(*self._inputs))]

    def placed(self):
        """The ops that it is lowered to, where what it gives lies."""
        with jax.default_device(self._device):
            leaves = jax.tree_util.tree_leaves(self._run(*self._inputs))
            text = jax.jit(self._function).lower(*self._inputs).as_text()
        places = sorted({_short(device) for leaf in leaves for device in leaf.devices()})
        return [(op, place) for op in sorted(set(_OP.findall(text))) for place in places]


def _whole(computation):
    """(function, inputs): with the gradient in it where one is asked for."""
    if computation.kind == "forward":
        return computation.function, computation.inputs
    if computation.kind == "gradient":
        return _gradient(computation)
    if computation.kind == "program":
        return computation.function, []
    raise NotImplementedError("a case of the kind {!r} is not for JAX".format(computation.kind))


def _gradient(computation):
    shapes = jax.tree_util.tree_leaves(jax.eval_shape(computation.function, *computation.inputs))
    upstream = [computation.upstream(shape.shape, str(shape.dtype)) for shape in shapes]

    def gradient(*given):
        inputs, handed = given[:len(computation.inputs)], given[len(computation.inputs):]

        def of(*some):
            put = dict(zip(computation.wrt, some))
            called = computation.function(*[put.get(number, value) for number, value in enumerate(inputs)])
            return jax.tree_util.tree_leaves(called)

        _, back = jax.vjp(of, *[inputs[number] for number in computation.wrt])
        return back(list(handed))

    return gradient, computation.inputs + upstream


def _short(device):
    return "{}:{}".format({"cpu": "CPU", "gpu": "GPU"}[device.platform], device.id)
