"""The facts about collective ops that their schemas lack: which arguments they read and write."""

import torch


def is_collective(schema):
    """Return whether other processes take part in an op. Its result arrives when they have sent it."""
    return schema.name.startswith(("c10d::", "_c10d_functional"))


def writes(base, name):
    """Return whether an op writes into this argument. base: the op's name without its namespace."""
    return name.startswith("out") or name == "tensors" and base.endswith("_")


def ignores_argument(base, name):
    """Return whether an op does not read this argument's content."""
    return name.startswith("out") or base.startswith("recv_") or "barrier" in base


def is_root(args):
    """Return whether this process is the sender of a broadcast, or it is unknown. args: of broadcast_."""
    try:
        return torch.distributed.ProcessGroup.unbox(args[1]).rank() == args[2]
    except (AttributeError, IndexError, RuntimeError, TypeError):
        return True
