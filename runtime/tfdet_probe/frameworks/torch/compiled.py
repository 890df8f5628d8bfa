"""torch.compile in one process: whole or not at all, and every decision taken anew in each."""

import importlib.util
import os
import shutil
import sysconfig
import tempfile

from tfdet_probe.core.errors import Unsupported

from . import placement

# Imported before the fork: each process of each case would spend seconds on them.
_MODULES = ("torch._dynamo.backends.inductor", "torch._dynamo.repro.after_dynamo", "torch._inductor.compile_fx",
            "torch._inductor.scheduler", "torch._inductor.codegen.cpp", "torch._inductor.codegen.wrapper",
            "torch._inductor.fx_passes.joint_graph", "torch._inductor.fx_passes.fuse_attention",
            "torch._inductor.fx_passes.quantization", "sympy.physics.units")
# What one process decided would be another's: fresh processes would be none.  What the C++ compiler makes of a text
# is shared, by the text.
_ANEW = {"torch._inductor.config": {"fx_graph_cache": False, "autotune_local_cache": False, "compile_threads": 1},
         "torch._functorch.config": {"enable_autograd_cache": False},
         "torch._dynamo.config": {"automatic_dynamic_local_pgo": False}}  # type: dict[str, dict[str, object]]


def load():
    """Called before the fork; what it gives holds the compiled code as long as it lives."""
    folder = tempfile.TemporaryDirectory(prefix="tfdet-compiled-")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder.name
    for name, values in _ANEW.items():  # first: to PyTorch 2.4 the import of others starts the compilers it is allowed
        config = _module(name)
        for key, value in values.items():
            if hasattr(config, key):
                setattr(config, key, value)
    for name in _MODULES:
        _module(name)
    return folder


def _module(name):
    """None where this version has none such."""
    try:
        return importlib.import_module(name)
    except Exception:  # an old one may refuse this Python: what its compiler says then is for each case to record
        return None


def start(device):
    """Make this process compile, for this torch.device; the list that what is compiled is told to. After load()."""
    lacking = _lacking(device.type)
    if lacking:
        raise Unsupported("torch.compile needs {}, and there is none".format(lacking))
    return _watched()


def _lacking(kind):
    """Of what torch.compile makes code with."""
    if not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")):
        return "Python's header files"
    if kind == "cpu":
        return None if shutil.which(os.environ.get("CXX") or "g++") else "a C++ compiler"
    if importlib.util.find_spec("triton") is None:
        return "Triton"
    found = [name for name in (os.environ.get("CC"), "gcc", "clang") if name and shutil.which(name)]
    return None if found else "a C compiler"


def _watched():
    """[(op, device)] of all graphs that are compiled from here on, forward and backward."""
    from torch._inductor.graph import GraphLowering
    seen, make = [], GraphLowering.__init__

    def watching(self, graph, *args, **kwargs):
        seen.extend(_ops(graph))
        make(self, graph, *args, **kwargs)

    GraphLowering.__init__ = watching
    return seen


def _ops(graph):
    import torch
    for node in graph.graph.nodes:
        value = node.meta.get("val")
        some = [one for one in (value if isinstance(value, (list, tuple)) else [value])
                if isinstance(one, torch.Tensor)]
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            for one in some:
                yield node.target.overloadpacket.__name__, placement.name(one.device)
