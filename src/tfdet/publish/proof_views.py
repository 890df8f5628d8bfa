"""What `tfdet prove` prints: one line a kernel, and for what is not proved why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tfdet.audit.demangle import demangle
from tfdet.store.fast_records import to_summary
from tfdet.store.records import Proof, Record
from tfdet.verdicts.infer import EQUAL_VERDICTS, InferredCell, Verdict
from tfdet_common.order_report import KernelLaunches, OrderReport

_MAX_REASONS = 5  # of a kernel; --json has all
_LONGEST_NAME = 100
RULES = {
    "same_value": "writes of the value that is there",
    "one_value": "writes of one value",
    "commuting": "atomics that commute and whose old values nobody uses",
    "exact_sum": "sums of floats that no order rounds, for these values",
    "update_loop": "compare-and-swap loops that commute",
}
_TEXTS = {
    "race": "two threads access one address, one of them writes, and nothing orders them",
    "memory_order": "threads reach one address in an order that the schedule chooses",
    "old_value": "the old value of an atomic is used",
    "rounding": "a sum of floats rounds, so its order shows",
    "uninitialized": "uninitialized memory is read",
    "stale_read": "a read through the non-coherent cache may miss what the launch writes",
    "fault": "the launch failed",
    "check_memory": "the check needs more memory than it may take",
    "instruction_set": "its instruction set does not say what a proof needs",
    "clock": "it reads a clock",
    "processor": "it reads on which multiprocessor or warp slot it runs",
    "active_lanes": "it reads which lanes are active",
    "inactive_lane": "it reads a value of a lane that takes no part",
    "partial_vote": "a vote of some threads of a block",
    "asynchronous_copy": "an asynchronous copy may be over at any time before it is waited for",
    "heap": "it allocates memory on the device",
    "output": "it prints",
    "dependent_launch": "it overlaps with the next launch",
    "event_time": "the host reads how long the device took, and may choose by it",
    "host_function": "a function of the host runs in a stream, and what it does is not observed",
    "cpu_fallback": "a vendor library's call, computed on the CPU",
    "no_kernel": "no kernel was launched",
    "runs_differ": "runs gave other bytes: the host gives the device other values in each, such as a random seed",
    "left_out": "the report is full, and does not have all launches",
}


def lines(found: OrderReport) -> Iterator[str]:
    """At most a few lines a kernel, in the order of the first launches; the last line counts."""
    names = demangle(found.kernels)
    for name, kernel in zip(names, found.kernels.values(), strict=True):
        many = f"{kernel.launches:,} launches" if kernel.launches > 1 else "1 launch"
        if kernel.is_proved:
            yield f"proved      {name} ({many})"
            continue
        yield f"not proved  {name} ({kernel.launches - kernel.proved:,} of {many})"
        ranked = kernel.reasons.most_common()
        yield from (f"            {reason_text(*reason)}" for reason, _ in ranked[:_MAX_REASONS])
        if len(ranked) > _MAX_REASONS:
            yield f"            and {len(ranked) - _MAX_REASONS} more (--json)"
    for (what, reason), times in found.host.items():
        yield f"not proved  on the host, {what}: {reason_text(reason, ())} ({times:,} times)"
    proved = sum(kernel.is_proved for kernel in found.kernels.values())
    if not found.kernels:
        yield "No kernel was launched: nothing is proved."
        return
    yield f"{proved} of {len(found.kernels)} kernels give the same bytes in every order of execution, for this input."


def reason_text(name: str, at: Sequence[int]) -> str:
    """Why a proof ended, in words.  at: the lines of PTX that meet, or the offsets in machine code."""
    where = f" (line{'s' * (len(at) > 1)} {' and '.join(map(str, at))})" if at else ""
    return f"{_TEXTS.get(name, name)}{where}"


def proof_note(cell: InferredCell) -> str:
    """Behind a verdict: what its proof holds for, or how many of its cases are not proved and why."""
    proof = cell.proof
    if proof is None:
        return ""
    if cell.verdict is Verdict.SCHEDULE_INDEPENDENT:
        what = "these inputs" if proof.holds_for == "input" else "every input of these shapes"
        return f", proved of {_cases(proof.cases)} for {what}"
    if proof.contradicted:
        return f", and yet proved: {', '.join(proof.contradicted)}"
    if cell.verdict not in EQUAL_VERDICTS:
        return ""
    untried = proof.cases - proof.tried
    why = [f"{reason.replace('_', ' ')} ({times})" for reason, times in proof.reasons.items()]
    why += [f"not tried ({untried})"] if untried else []
    return f"; {proof.proved} of {_cases(proof.cases)} proved, not: {', '.join(why)}"


_HEADING = "\nproofs: does any order of execution give other bytes? (docs/explanation/what-a-proof-proves.md)"


def explain(records: Iterable[Record]) -> Iterator[str]:
    """What the proofs of these records say, in words: a heading and some lines, or nothing."""
    tried = [record for record in records if record.proof]
    if tried:
        yield _HEADING
    for record in tried:
        told = explain_proof(record)
        yield f"  {record.case} under {record.solution} on {record.device.model}: {told[0]}"
        yield from (f"      {line}" for line in told[1:])


def explain_proof(record: Record) -> list[str]:
    """What the proof of one record says, the answer first; nothing where it has none."""
    if record.proof is None:
        return []
    proof = record.proof
    if to_summary(proof).is_proved:
        launches = sum(kernel.launches for kernel in proof.kernels)
        many = f"{launches} launch{'es' if launches != 1 else ''} of {_kernels(proof)}"
        return [f"proved, in {many}: no order of execution gives other bytes", _carried(proof)]
    return ["not proved", *_failures(proof)]


def _kernels(proof: Proof) -> str:
    return f"{len(proof.kernels)} kernel{'s' if len(proof.kernels) != 1 else ''}"


def _carried(proof: Proof) -> str:
    """By which rules."""
    rules = sorted({rule for kernel in proof.kernels for rule in kernel.rules})
    known = "; ".join(RULES.get(rule, rule) for rule in rules)
    plain = "all accesses that could conflict are ordered by barriers, warps or the stream"
    return f"{plain}, or are {known}" if known else plain


def _failures(proof: Proof) -> Iterator[str]:
    names = demangle(kernel.name for kernel in proof.kernels)
    for name, kernel in zip(names, proof.kernels, strict=True):
        told = [reason_text(one.reason, one.lines) for one in kernel.reasons]
        more = f"; and {len(told) - _MAX_REASONS} more" if len(told) > _MAX_REASONS else ""
        if told:
            yield f"{shorten(name)}: {'; '.join(told[:_MAX_REASONS])}{more}"
    for one in proof.host:
        yield f"{one.operation}: {reason_text(one.reason, ())}"


def shorten(name: str) -> str:
    """A kernel's name at a length that can be read: Eigen's have thousands of characters."""
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 3] + "..."


def _cases(number: int) -> str:
    return f"{number} case{'s' if number != 1 else ''}"


def as_json(found: OrderReport) -> dict[str, Any]:
    return {
        "proved": found.is_proved,
        "kernels": [_kernel(kernel) for kernel in found.kernels.values()],
        "host": {f"{what}: {reason}": times for (what, reason), times in found.host.items()},
    }


def _kernel(kernel: KernelLaunches) -> dict[str, Any]:
    return {
        "kernel": kernel.kernel,
        "launches": kernel.launches,
        "proved": kernel.proved,
        "rules": sorted(kernel.rules),
        "reasons": [
            {"reason": name, "lines": list(at), "launches": times} for (name, at), times in kernel.reasons.most_common()
        ],
    }
