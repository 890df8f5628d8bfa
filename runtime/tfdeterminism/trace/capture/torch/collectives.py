"""What processes send each other: who writes which tensor, which no schema of these ops says."""

import torch


def is_collective(schema):
    """Is it an op that other processes take part in? What it gives is there when they have sent it."""
    return schema.name.startswith(("c10d::", "_c10d_functional"))


def writes(base, name):
    """Does it write into this argument? base: the op's name without its family's."""
    return name.startswith("out") or name == "tensors" and base.endswith("_")


def ignores_argument(base, name):
    """Does it not ask for what lies in this argument?"""
    return name.startswith("out") or base.startswith("recv_") or "barrier" in base


def is_root(args):
    """Is it this process that sends what all others get? args: of broadcast_. If it cannot be known, yes."""
    try:
        return torch.distributed.ProcessGroup.unbox(args[1]).rank() == args[2]
    except (AttributeError, IndexError, RuntimeError, TypeError):
        return True
