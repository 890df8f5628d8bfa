"""JAX, 0.10 to the newest.  Its own modules are imported on use: the host asks for the modes only."""

import os

from tfdet_probe.frameworks.base import Framework

from . import errors


class Adapter(Framework):
    """Its switches are flags of XLA, which is told of them by a variable: there is no call."""

    name, title = "jax", "JAX"
    modes = ("eager", "jit")

    def before_import(self):
        """Three quarters of a GPU's memory at once would leave others nothing."""
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

    def started(self):
        """Its import starts a thread that waits; what computes comes with the first device that is asked for."""
        from jax._src import xla_bridge
        return xla_bridge.backends_are_initialized()

    def describe(self):
        """Of which CUDA its plugin is built, it does not tell."""
        import jax
        return {"version": jax.__version__}

    def visible(self, placement):
        import jax
        if placement != "GPU":
            return []
        try:
            found = jax.devices("gpu")
        except RuntimeError:  # no plugin, or no device
            return []
        return [{"name": one.device_kind, "compute_capability": str(one.compute_capability)} for one in found]

    def prepare(self, computation, mode, device, settings):
        from . import modes
        return modes.prepare(computation, mode, device, settings)

    def apply(self, call):
        from tfdet_probe.core.errors import NotHere
        raise NotHere("JAX has no call of that name: {}".format(call))

    def seed(self, call, seed):
        """JAX itself has none: its random ops take a key."""
        import random

        import numpy as np
        random.seed(seed)
        np.random.seed(seed)

    def classify(self, error):
        return errors.classify(error)
