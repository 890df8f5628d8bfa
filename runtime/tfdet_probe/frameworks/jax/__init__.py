"""JAX, 0.10 to the newest.  Its own modules are imported on use: `tfdet` on the host asks for the modes only."""

import os

from tfdet_probe.frameworks.base import Framework

from . import errors


class Adapter(Framework):
    """JAX in this process; frameworks.base.Framework says what each method does.

    Its solutions are flags of XLA, set by an environment variable; there is no call.
    """

    name, title = "jax", "JAX"
    modes = ("eager", "jit")

    def before_import(self):
        """Do not allocate three quarters of the GPU's memory at once: other processes need some."""
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

    def started(self):
        """JAX's import starts only an idle thread; the backends start with the first request for a device."""
        from jax._src import xla_bridge
        return xla_bridge.backends_are_initialized()

    def describe(self):
        """JAX does not report the CUDA version that its plugin is built with."""
        import jax
        return {"version": jax.__version__}

    def visible(self, placement):
        import jax
        if placement != "GPU":
            return []
        try:
            devices = jax.devices("gpu")
        except RuntimeError:  # no plugin, or no device
            return []
        return [{"name": gpu.device_kind, "compute_capability": str(gpu.compute_capability)} for gpu in devices]

    def prepare(self, computation, mode, device, settings):
        from . import modes
        return modes.prepare(computation, mode, device, settings)

    def apply(self, call):
        from tfdet_probe.base.errors import SolutionUnavailableError
        raise SolutionUnavailableError("JAX has no call of that name: {}".format(call))

    def seed(self, call, seed):
        """Seed Python and NumPy; JAX has no global seed: its random ops take a key."""
        import random

        import numpy as np
        random.seed(seed)
        np.random.seed(seed)

    def classify(self, error):
        return errors.classify(error)
