"""PyTorch, 2.0 to the newest.  Its own modules are imported on use: the host asks for the modes only."""

import os

from tfdet_probe.frameworks.base import Framework

from . import errors, solutions

# By NVML's word PyTorch counts GPUs without starting CUDA; its test code asks Numba, too.
_NO_GPU = {"CUDA_VISIBLE_DEVICES": "", "PYTORCH_NVML_BASED_CUDA_CHECK": "1", "NUMBA_DISABLE_CUDA": "1"}


class Adapter(Framework):
    name, title = "torch", "PyTorch"
    modes = ("eager", "compiled")

    def __init__(self):
        self._threads = _threads()
        self._hidden = {}  # type: dict[str, str | None]
        self._code = None

    def before_import(self):
        """Imported here, so that the threads of its pools can be told from those that its import starts.

        Its test code asks for GPUs when imported; no child could use one that was asked for before the fork.
        """
        self._hidden = {name: os.environ.get(name) for name in _NO_GPU}
        os.environ.update(_NO_GPU)
        import torch  # noqa: F401
        try:
            import torch.testing._internal.common_methods_invocations  # noqa: F401  (SciPy has threads of its own)
        except ImportError:
            pass
        self._threads = _threads()

    def started(self):
        import torch
        return bool(_threads() - self._threads) or torch.cuda.is_initialized()

    def before_fork(self, modes):
        if "compiled" in modes:
            from . import compiled
            self._code = compiled.load()

    def describe(self):
        import torch
        # Its label (+cpu, +cu130) says of which CUDA it is built: so does cuda.
        return {"version": torch.__version__.split("+")[0], "cuda": torch.version.cuda}

    def _show_gpus(self):
        """Called in a child."""
        for name, value in self._hidden.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value

    def visible(self, placement):
        self._show_gpus()
        import torch
        if placement != "GPU" or not torch.cuda.is_available():
            return []
        found = torch.cuda.get_device_properties(0)
        return [{"name": found.name, "compute_capability": "{}.{}".format(found.major, found.minor)}]

    def prepare(self, computation, mode, device, settings):
        self._show_gpus()
        from . import modes
        return modes.prepare(computation, mode, device, settings)

    def apply(self, call):
        return solutions.apply(call)

    def seed(self, call, seed):
        solutions.seed(seed)

    def kernels(self, run):
        from . import profile
        return profile.kernels(run)

    def classify(self, error):
        return errors.classify(error)

    def said(self, error):
        return errors.said(error)


def _threads():
    """Their ids, not how many: those of NumPy's linear algebra end with the first fork."""
    return set(os.listdir("/proc/self/task"))
