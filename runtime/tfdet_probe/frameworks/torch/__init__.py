"""PyTorch, 2.0 to the newest.  Its own modules are imported on use: `tfdet` on the host asks for the modes only."""

import os

from tfdet_probe.frameworks.base import Framework

from . import errors, solutions

# With these PyTorch and its test code (which uses Numba) see no GPU; NVML counts GPUs without starting CUDA.
_NO_GPU = {"CUDA_VISIBLE_DEVICES": "", "PYTORCH_NVML_BASED_CUDA_CHECK": "1", "NUMBA_DISABLE_CUDA": "1"}


class Adapter(Framework):
    """PyTorch in this process; frameworks.base.Framework says what each method does."""

    name, title = "torch", "PyTorch"
    modes = ("eager", "compiled")

    def __init__(self):
        self._threads = _threads()
        self._hidden = {}  # type: dict[str, str | None]
        self._code = None  # keeps the temporary folder of compiled.load() alive

    def before_import(self):
        """Import PyTorch with its GPUs hidden, and remember the threads that the import starts.

        Its test code looks for GPUs when imported, and no child can use CUDA that was initialized before the fork.
        """
        self._hidden = {name: os.environ.get(name) for name in _NO_GPU}
        os.environ.update(_NO_GPU)
        import torch  # noqa: F401
        try:
            import torch.testing._internal.common_methods_invocations  # noqa: F401  (it imports SciPy, which starts threads)
        except ImportError:
            pass
        self._threads = _threads()

    def started(self):
        import torch
        return bool(_threads() - self._threads) or torch.cuda.is_initialized()

    def own_allocations(self):
        return {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}

    def before_fork(self, modes):
        if "compiled" in modes:
            from . import compiled
            self._code = compiled.load()

    def describe(self):
        import torch
        # Without the local version label (+cpu, +cu130): the field cuda has it.
        return {"version": torch.__version__.split("+")[0], "cuda": torch.version.cuda}

    def _show_gpus(self):
        """Undo the hiding of before_import(); called in a child."""
        for name, value in self._hidden.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        import torch
        forget = getattr(torch.cuda.device_count, "cache_clear", None)
        if forget is not None:  # PyTorch 2.0 keeps the count from when they were hidden
            forget()

    def visible(self, placement):
        self._show_gpus()
        import torch
        if placement != "GPU" or not torch.cuda.is_available():
            return []
        properties = torch.cuda.get_device_properties(0)
        return [{"name": properties.name, "compute_capability": "{}.{}".format(properties.major, properties.minor)}]

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

    def error_text(self, error):
        return errors.error_text(error)


def _threads():
    """The ids of this process's threads; their number is not enough: NumPy's threads end with the first fork."""
    return set(os.listdir("/proc/self/task"))
