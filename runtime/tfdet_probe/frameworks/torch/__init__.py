"""PyTorch, 2.0 to the newest.  Its own modules are imported on use: the host asks for the modes only."""

import os

from tfdet_probe.frameworks.base import Framework

from . import errors, solutions


class Adapter(Framework):
    name, title = "torch", "PyTorch"
    modes = ("eager",)

    def __init__(self):
        self._threads = _threads()

    def before_import(self):
        """Imported here, so that the threads of its pools can be told from those that its import starts."""
        import torch  # noqa: F401
        self._threads = _threads()

    def started(self):
        import torch
        return bool(_threads() - self._threads) or torch.cuda.is_initialized()

    def describe(self):
        import torch
        # Its label (+cpu, +cu130) says of which CUDA it is built: so does cuda.
        return {"version": torch.__version__.split("+")[0], "cuda": torch.version.cuda}

    def visible(self, placement):
        import torch
        if placement != "GPU" or not torch.cuda.is_available():
            return []
        found = torch.cuda.get_device_properties(0)
        return [{"name": found.name, "compute_capability": "{}.{}".format(found.major, found.minor)}]

    def prepare(self, computation, mode, device, settings):
        from . import modes
        return modes.prepare(computation, mode, device, settings)

    def apply(self, call):
        return solutions.apply(call)

    def seed(self, call, seed):
        solutions.seed(seed)

    def classify(self, error):
        return errors.classify(error)


def _threads():
    """Their ids, not how many: those of NumPy's linear algebra end with the first fork."""
    return set(os.listdir("/proc/self/task"))
