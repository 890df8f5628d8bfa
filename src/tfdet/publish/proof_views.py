"""The output of `tfdet prove`, and texts about proofs: a line for each kernel, and the reasons if it is not proved.

A proof shows that no order of execution of a kernel gives other bytes. The virtual GPU, an emulator, tries it while it
runs the kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from tfdet.audit.demangle import demangle
from tfdet.store.fast_records import to_summary
from tfdet.store.records import Proof, Record
from tfdet.verdicts.infer import NO_DIFFERENCE_VERDICTS, InferredCell, Verdict
from tfdet.verdicts.proofs import CellProof
from tfdet_common import virtual_gpu
from tfdet_common.order_report import KernelLaunches, OrderReport

_MAX_REASONS = 5  # reasons per kernel; --json has all
_MAX_NAME_LENGTH = 100  # characters
RULES = {
    "same_value": "writes of the value that is there",
    "one_value": "writes of one value",
    "commuting": "atomics that commute and whose old values nobody uses",
    "exact_sum": "sums of floats that no order rounds, for these values",
    "update_loop": "compare-and-swap loops that commute",
    "exploration": "all orders of a few accesses, which agree",
}
_REASON_TEXTS = {
    "race": "two threads access one address, one of them writes, and neither barriers nor the stream order them",
    "memory_order": "threads reach one address in an order that the schedule chooses",
    "old_value": "the old value of an atomic is used, or a compare-and-swap compares with it",
    "half_sum": "a sum of 16-bit floats may round",
    "rounding": "a sum of floats rounds, so its order shows",
    "scope": "an atomic that is atomic only within its block meets an access of another block",
    "uninitialized": "uninitialized memory is read",
    "uninitialized_copy": "the host receives bytes that nothing has written",
    "stale_read": "a read through the non-coherent cache may miss what the launch writes",
    "allocation_order": "memory is used that a stream allocates, and nothing orders the use after that",
    "fault": "the launch failed",
    "refused": "the launch was refused: the kernel did not run",
    "unsupported": "the virtual GPU does not support it",
    "check_memory": "the check needs more memory than it may take",
    "instruction_set": "its code does not contain what a proof needs",
    "clock": "it reads a clock",
    "processor": "it reads on which multiprocessor, in which warp slot or in which grid it runs",
    "active_lanes": "it reads which lanes are active",
    "inactive_lane": "it reads a value of a lane that takes no part",
    "partial_vote": "a vote of some threads of a block",
    "asynchronous_copy": "an asynchronous copy may be over at any time before it is waited for",
    "heap": "it allocates memory on the device",
    "output": "it prints",
    "dependent_launch": "it overlaps with the next launch",
    "event_time": "the host reads how long the device took, and may choose by it",
    "query": "the host asks whether the device has finished, and may choose by the answer",
    "host_function": "a function of the host runs in a stream, and what it does is not observed",
    "cpu_fallback": "a vendor library's call, computed on the CPU",
    "no_kernel": "no kernel was launched",
    "runs_differ": "runs gave other bytes: the host gives the device other values in each, such as a random seed",
    "left_out": "the report is full, and does not have all launches",
}


def lines(report: OrderReport) -> Iterator[str]:
    """Yield some lines for each kernel, in the order of the first launches, and the result in one or two lines."""
    names = demangle(report.kernels)
    for name, kernel in zip(map(shorten, names), report.kernels.values(), strict=True):
        launches_text = f"{kernel.launches:,} launches" if kernel.launches > 1 else "1 launch"
        if kernel.is_proved:
            yield f"proved      {name} ({launches_text})"
            continue
        yield f"not proved  {name} ({kernel.launches - kernel.proved:,} of {launches_text})"
        ranked = kernel.ranked_reasons()
        unit = _unit(kernel.codes)
        for reason, _ in ranked[:_MAX_REASONS]:
            yield f"            {reason_text(*reason, unit=unit)}"
            yield from (f"              {text}" for text in _position_texts(kernel, reason, unit))
        if len(ranked) > _MAX_REASONS:
            yield f"            and {len(ranked) - _MAX_REASONS} more (--json)"
    for (operation, reason), times in sorted(report.host.items()):
        where = "on the host" if operation == "host" else operation
        yield f"not proved  {where}: {reason_text(reason, ())}" + (f" ({times:,} times)" if times > 1 else "")
    proved = sum(kernel.is_proved for kernel in report.kernels.values())
    if not report.kernels:
        yield "No kernel was launched: nothing is proved."
        return
    yield f"{proved} of {len(report.kernels)} kernels give the same bytes in every order of execution, for this input."
    if report.host:
        yield "The program as a whole is not proved, for the reasons that are not a kernel's."


def _position_texts(kernel: KernelLaunches, reason: tuple[str, tuple[int, ...]], unit: str) -> list[str]:
    """Return where the instructions of a reason are, if that is in another function or the code names source files."""
    texts: dict[str, None] = {}
    for position in sorted(kernel.positions[reason], key=itemgetter("line", "function")):
        source = " > ".join(Path(line).name for line in reversed(position["source"]))  # calls that were inlined first
        (function,) = demangle([position["function"]])
        where = f"in {shorten(function)}" if position["function"] != kernel.kernel else ""
        if where or source:
            number = hex(position["line"]) if unit == "offset" else position["line"]
            texts[f"{unit} {number}: {' at '.join(filter(None, [where, source]))}"] = None
    return list(texts)


def _unit(codes: Collection[str]) -> str:
    """Return what the positions in these kinds of code are called: "line" of PTX, "offset" in machine code, or both."""
    units = sorted({"line" if code == "ptx" else "offset" for code in codes})
    return " or ".join(units or ["line"])


def reason_text(name: str, *places: Sequence[int], unit: str = "line") -> str:
    """Return why a proof failed.  places: at each the positions of the instructions that conflict, in this unit."""
    texts = [" and ".join(hex(n) if unit == "offset" else str(n) for n in lines) for lines in places if lines]
    if len(texts) > _MAX_REASONS:
        texts[_MAX_REASONS:] = [f"and {len(texts) - _MAX_REASONS} more"]
    where = f" ({unit}{'s' * (sum(map(len, places)) > 1)} {'; '.join(texts)})" if texts else ""
    return f"{_REASON_TEXTS.get(name, name)}{where}"


def proof_note(cell: InferredCell) -> str:
    """Return the text after a verdict: what its proof holds for, or how many of its cases are not proved, and why."""
    proof = cell.proof
    if proof is None:
        return ""
    if cell.verdict is Verdict.SCHEDULE_INDEPENDENT:
        scope = "these inputs" if proof.holds_for == "input" else "every input of these shapes"
        return f", proved of {_cases_text(proof.cases)} for {scope}{_comparison_text(proof)}"
    if proof.contradicted:
        return f", and yet proved: {', '.join(proof.contradicted)}"
    if cell.verdict not in NO_DIFFERENCE_VERDICTS:
        return ""
    untried = proof.cases - proof.tried
    reasons = [f"{reason.replace('_', ' ')} ({times})" for reason, times in proof.reasons.items()]
    reasons += [f"not tried ({untried})"] if untried else []
    return f"; {proof.proved} of {_cases_text(proof.cases)} proved, not: {', '.join(reasons)}"


# Placement: the addresses of allocations, which a seed decides.
_AXIS_TEXTS = {virtual_gpu.MULTIPROCESSORS: "multiprocessors", virtual_gpu.PLACEMENT: "as the seed of the placement"}


def _comparison_text(proof: CellProof) -> str:
    """Return with which numbers of multiprocessors and placements the bytes are the same, and with which others."""
    texts = []
    for name, comparison in proof.compared.items():
        for what, numbers in (("the same", comparison.same), ("other", comparison.other)):
            if numbers:
                texts.append(f"; {what} bytes with {', '.join(map(str, numbers))} {_AXIS_TEXTS[name]}")
    return "".join(texts)


_HEADING = "\nproofs: does any order of execution give other bytes? (docs/explanation/what-a-proof-proves.md)"


def explain(records: Iterable[Record]) -> Iterator[str]:
    """Yield a heading and some lines on the proofs of these records, each explanation once; nothing without proofs."""
    by_explanation: dict[tuple[bool, tuple[str, ...]], list[Record]] = {}
    for record in records:
        if record.proof:
            explanation = to_summary(record.proof).is_proved, tuple(explain_proof(record)[1:])
            by_explanation.setdefault(explanation, []).append(record)
    if by_explanation:
        yield _HEADING
    for (is_proved, details), explained in by_explanation.items():
        result = f"proved, in {_launches_text(explained)}," if is_proved else "not proved"
        yield from (f"  {result} {runs}" for runs in _runs_texts(explained))
        yield from (f"      {line}" for line in details)


def _launches_text(records: Sequence[Record]) -> str:
    counts = sorted({sum(kernel.launches for kernel in record.proof.kernels) for record in records if record.proof})
    numbers = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
    return f"{numbers} launch{'es' if counts != [1] else ''}"


def _runs_texts(records: Sequence[Record]) -> Iterator[str]:
    """Yield the solutions and the device of some runs, and their cases."""
    solutions: dict[tuple[str, str], list[str]] = {}  # by device and case
    for record in records:
        solutions.setdefault((_device_text(record), record.case), []).append(record.solution)
    cases: dict[tuple[str, str], list[str]] = {}  # by device and solutions
    for (device, case), names in solutions.items():
        cases.setdefault((device, ", ".join(dict.fromkeys(names))), []).append(case)
    for (device, solution_names), tested in cases.items():
        yield f"under {solution_names} on {device}: {', '.join(tested)}"


def _device_text(record: Record) -> str:
    details = record.device.details or {}
    axes = [f"{details[name]} {text}" for name, text in _AXIS_TEXTS.items() if name in details]
    return " with ".join([record.device.model, *([" and ".join(axes)] if axes else [])])


def explain_proof(record: Record) -> list[str]:
    """Return lines on the proof of one record, its result first; an empty list if it has no proof."""
    if record.proof is None:
        return []
    proof = record.proof
    if to_summary(proof).is_proved:
        launches_text = f"{_launches_text([record])} of {_kernels_text(proof)}"
        return [f"proved, in {launches_text}: no order of execution gives other bytes", _rules_text(proof)]
    codes = (record.device.details or {}).get("code")
    return ["not proved", *_failures(proof, _unit(codes if isinstance(codes, list) else ()))]


def _kernels_text(proof: Proof) -> str:
    return f"{len(proof.kernels)} kernel{'s' if len(proof.kernels) != 1 else ''}"


def _rules_text(proof: Proof) -> str:
    """Return by which rules a proof succeeded."""
    rules = sorted({rule for kernel in proof.kernels for rule in kernel.rules})
    texts = "; ".join(RULES.get(rule, rule) for rule in rules)
    base_text = "all accesses that could conflict are ordered by barriers, warps or the stream"
    return f"{base_text}, or are {texts}" if texts else base_text


def _failures(proof: Proof, unit: str) -> Iterator[str]:
    names = demangle(kernel.name for kernel in proof.kernels)
    for name, kernel in zip(names, proof.kernels, strict=True):
        lines_of: dict[str, list[Sequence[int]]] = {}
        for kernel_reason in kernel.reasons:
            lines_of.setdefault(kernel_reason.reason, []).append(kernel_reason.lines)
        if lines_of:
            texts = (reason_text(reason, *places, unit=unit) for reason, places in lines_of.items())
            yield f"{shorten(name)}: {'; '.join(texts)}"
    for host_reason in proof.host:
        yield f"{host_reason.operation}: {reason_text(host_reason.reason, ())}"


def shorten(name: str) -> str:
    """Return a kernel's name, cut to a readable length: Eigen's have thousands of characters."""
    return name if len(name) <= _MAX_NAME_LENGTH else name[: _MAX_NAME_LENGTH - 3] + "..."


def _cases_text(number: int) -> str:
    return f"{number} case{'s' if number != 1 else ''}"


def as_json(report: OrderReport) -> dict[str, Any]:
    return {
        "proved": report.is_proved,
        "kernels": [_kernel(kernel) for kernel in report.kernels.values()],
        "host": {f"{operation}: {reason}": times for (operation, reason), times in sorted(report.host.items())},
    }


def _kernel(kernel: KernelLaunches) -> dict[str, Any]:
    return {
        "kernel": kernel.kernel,
        "launches": kernel.launches,
        "proved": kernel.proved,
        "rules": sorted(kernel.rules),
        "reasons": [
            {"reason": name, "lines": list(numbers), "positions": kernel.positions[name, numbers], "launches": times}
            for (name, numbers), times in kernel.ranked_reasons()
        ],
    }
