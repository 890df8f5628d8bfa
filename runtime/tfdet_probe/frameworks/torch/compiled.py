"""torch.compile: full graphs only, and without caches, so that each process compiles for itself."""

import importlib.util
import os
import shutil
import sysconfig
import tempfile

from tfdet_probe.base.errors import UnsupportedError

from . import placement

# Imported before the fork: importing them takes each process seconds.
_MODULES = ("torch._dynamo.backends.inductor", "torch._dynamo.repro.after_dynamo", "torch._inductor.compile_fx",
            "torch._inductor.scheduler", "torch._inductor.codegen.cpp", "torch._inductor.codegen.wrapper",
            "torch._inductor.fx_passes.joint_graph", "torch._inductor.fx_passes.fuse_attention",
            "torch._inductor.fx_passes.quantization", "sympy.physics.units")
# Without caches of decisions, which a process would take over from another.  Only the output of the C++ compiler is
# shared, keyed by its input.
_FRESH_CACHE_SETTINGS = {
    "torch._inductor.config": {"fx_graph_cache": False, "autotune_local_cache": False, "compile_threads": 1},
    "torch._functorch.config": {"enable_autograd_cache": False},
    "torch._dynamo.config": {"automatic_dynamic_local_pgo": False}}  # type: dict[str, dict[str, object]]


def load():
    """Import the compiler, before the fork.  Returns the temporary folder of compiled code: keep it alive."""
    folder = tempfile.TemporaryDirectory(prefix="tfdet-compiled-")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder.name
    # Before the imports below, which up to PyTorch 2.4 start worker processes.
    for name, values in _FRESH_CACHE_SETTINGS.items():
        config = _module(name)
        for key, value in values.items():
            if hasattr(config, key):
                setattr(config, key, value)
    for name in _MODULES:
        _module(name)
    return folder


def _module(name):
    """Import a module; None if this version does not have it."""
    try:
        return importlib.import_module(name)
    except Exception:  # it may not support this Python; then each case records the compiler's error
        return None


def start(device):
    """Check that torch.compile can run, and record what it compiles.  Call load() first.

    Args:
        device: a torch.device.

    Returns:
        A list that [(op, device)] of each compiled graph is appended to.

    Raises:
        UnsupportedError: a compiler is missing.
    """
    missing = _missing_compiler(device.type)
    if missing:
        raise UnsupportedError("torch.compile needs {}, and there is none".format(missing))
    return _record_graphs()


def _missing_compiler(kind):
    """The name of a tool that torch.compile needs and that is missing, or None."""
    if not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")):
        return "Python's header files"
    if kind == "cpu":
        return None if shutil.which(os.environ.get("CXX") or "g++") else "a C++ compiler"
    if importlib.util.find_spec("triton") is None:
        return "Triton"
    compilers = [name for name in (os.environ.get("CC"), "gcc", "clang") if name and shutil.which(name)]
    return None if compilers else "a C compiler"


def _record_graphs():
    """A list that collects (op, device) of all graphs compiled from now on, forward and backward."""
    from torch._inductor.graph import GraphLowering
    compiled_ops, original = [], GraphLowering.__init__

    def recording(self, graph, *args, **kwargs):
        compiled_ops.extend(_ops(graph))
        original(self, graph, *args, **kwargs)

    GraphLowering.__init__ = recording
    return compiled_ops


def _ops(graph):
    import torch
    for node in graph.graph.nodes:
        value = node.meta.get("val")
        values = value if isinstance(value, (list, tuple)) else [value]
        tensors = [item for item in values if isinstance(item, torch.Tensor)]
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            for tensor in tensors:
                yield node.target.overloadpacket.__name__, placement.name(tensor.device)
