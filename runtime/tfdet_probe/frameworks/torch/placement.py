"""Where ops ran, as PyTorch's dispatcher reports it: [(op name, device such as GPU:0)]."""

from torch.utils._python_dispatch import TorchDispatchMode

from . import pytree


def record_placements(run):
    """The ops that run() executes, and their devices."""
    placements = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            # An op without output tensors ran where its inputs are.
            tensors = pytree.tensors(result) or pytree.tensors([args, kwargs or {}])
            placements.extend((function.overloadpacket.__name__, name(tensor.device)) for tensor in tensors)
            return result

    with Recorder():
        run()
    return placements


def name(device):
    """The name of a torch.device in records, such as GPU:0."""
    return "CPU:0" if device.type == "cpu" else "GPU:{}".format(device.index or 0)
