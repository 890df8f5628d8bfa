"""What `tfdet prove` prints: one line a kernel, and for what is not proved why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfdet.audit.demangle import demangle
from tfdet.engines.proof import KernelProof, ProgramProof, Reason

_MAX_REASONS = 5  # of a kernel; --json has all
_TEXTS = {
    "race": "two threads access one address, one of them writes, and nothing orders them",
    "memory_order": "threads reach one address in an order that the schedule chooses",
    "old_value": "the old value of an atomic is used",
    "rounding": "a sum of floats rounds, so its order shows",
    "uninitialized": "uninitialized memory is read",
    "stale_read": "a read through the non-coherent cache may miss what the launch writes",
    "fault": "the launch failed",
    "check_memory": "the check needs more memory than it may take",
    "instruction_set": "it is machine code, of which nothing can be proved yet",
    "clock": "it reads a clock",
    "processor": "it reads on which multiprocessor or warp slot it runs",
    "active_lanes": "it reads which lanes are active",
    "inactive_lane": "it reads a value of a lane that takes no part",
    "partial_vote": "a vote of some threads of a block",
    "heap": "it allocates memory on the device",
    "output": "it prints",
    "dependent_launch": "it overlaps with the next launch",
}


def lines(found: ProgramProof) -> Iterator[str]:
    """At most a few lines a kernel, in the order of the first launches; the last line counts."""
    names = demangle(found.kernels)
    for name, kernel in zip(names, found.kernels.values(), strict=True):
        many = f"{kernel.launches:,} launches" if kernel.launches > 1 else "1 launch"
        if kernel.is_proved:
            yield f"proved      {name} ({many})"
            continue
        yield f"not proved  {name} ({kernel.launches - kernel.proved:,} of {many})"
        ranked = kernel.reasons.most_common()
        yield from (f"            {_text(reason)}" for reason, _ in ranked[:_MAX_REASONS])
        if len(ranked) > _MAX_REASONS:
            yield f"            and {len(ranked) - _MAX_REASONS} more (--json)"
    for what, times in found.host.items():
        yield f"not proved  on the host, {what} ({times:,} times)"
    proved = sum(kernel.is_proved for kernel in found.kernels.values())
    if not found.kernels:
        yield "No kernel was launched: nothing is proved."
        return
    yield f"{proved} of {len(found.kernels)} kernels give the same bytes in every order of execution, for this input."


def _text(reason: Reason) -> str:
    name, at = reason
    where = f" (line{'s' * (len(at) > 1)} {' and '.join(map(str, at))})" if at else ""
    return f"{_TEXTS.get(name, name)}{where}"


def as_json(found: ProgramProof) -> dict[str, Any]:
    return {
        "proved": found.is_proved,
        "kernels": [_kernel(kernel) for kernel in found.kernels.values()],
        "host": dict(found.host),
    }


def _kernel(kernel: KernelProof) -> dict[str, Any]:
    return {
        "kernel": kernel.kernel,
        "launches": kernel.launches,
        "proved": kernel.proved,
        "rules": sorted(kernel.rules),
        "reasons": [
            {"reason": name, "lines": list(at), "launches": times} for (name, at), times in kernel.reasons.most_common()
        ],
    }
