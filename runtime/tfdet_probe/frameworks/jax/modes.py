"""Runners for JAX: op by op, or compiled as one program."""

import re

import jax
import numpy as np

from tfdet_probe.frameworks.base import Runner

_OP = re.compile(r"\b(?:stablehlo|chlo)\.(\w+)")


def prepare(computation, mode, device, settings):
    """Build the Runner of a computation, see frameworks.base.Framework.prepare; device: such as GPU:0."""
    kind, number = device.split(":")
    return _Runner(computation, mode == "jit", jax.devices(kind.lower())[int(number)], settings)


class _Runner(Runner):
    def __init__(self, computation, compiled, device, settings):
        self._device, self._settings = device, settings
        self._function, given = _function_and_inputs(computation)
        self._inputs = [jax.device_put(value, device) for value in given]
        self._run = jax.jit(self._function) if compiled else self._function

    def run(self):
        self._settings.before_repeat()
        with jax.default_device(self._device):
            return [np.array(leaf) for leaf in jax.tree_util.tree_leaves(self._run(*self._inputs))]

    def op_placements(self):
        """The StableHLO ops that the function is lowered to, on the devices that hold its outputs."""
        with jax.default_device(self._device):
            leaves = jax.tree_util.tree_leaves(self._run(*self._inputs))
            text = jax.jit(self._function).lower(*self._inputs).as_text()
        devices = sorted({_short_name(device) for leaf in leaves for device in leaf.devices()})
        return [(op, device) for op in sorted(set(_OP.findall(text))) for device in devices]


def _function_and_inputs(computation):
    """The function to run, and its inputs; for a gradient the function differentiates."""
    if computation.kind == "forward":
        return computation.function, computation.inputs
    if computation.kind == "gradient":
        return _gradient(computation)
    if computation.kind == "program":
        return computation.function, []
    raise NotImplementedError("JAX does not support cases of the kind {!r}".format(computation.kind))


def _gradient(computation):
    shapes = jax.tree_util.tree_leaves(jax.eval_shape(computation.function, *computation.inputs))
    upstream = [computation.upstream(shape.shape, str(shape.dtype)) for shape in shapes]

    def gradient(*arguments):
        inputs, output_gradients = arguments[:len(computation.inputs)], arguments[len(computation.inputs):]

        def function_of_wrt(*values):
            replaced = dict(zip(computation.wrt, values))
            outputs = computation.function(*[replaced.get(index, value) for index, value in enumerate(inputs)])
            return jax.tree_util.tree_leaves(outputs)

        _, vjp = jax.vjp(function_of_wrt, *[inputs[index] for index in computation.wrt])
        return vjp(list(output_gradients))

    return gradient, computation.inputs + upstream


def _short_name(device):
    return "{}:{}".format({"cpu": "CPU", "gpu": "GPU"}[device.platform], device.id)
