"""Where ops really ran: [(op name, device such as GPU:0)], asked of PyTorch's dispatcher."""

from torch.utils._python_dispatch import TorchDispatchMode

from . import values


def of(run):
    seen = []

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            # An op without a tensor to give ran where what it took is.
            tensors = values.tensors(result) or values.tensors([args, kwargs or {}])
            seen.extend((function.overloadpacket.__name__, name(tensor.device)) for tensor in tensors)
            return result

    with Watching():
        run()
    return seen


def name(device):
    """A torch.device as records call it."""
    return "CPU:0" if device.type == "cpu" else "GPU:{}".format(device.index or 0)
