"""Classification of kernels by their atomics: whether the order of the threads can change the result, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tfdet.store.audits import Verdict

_FLOAT_ADD = "float_add_"
_ORDER_INDEPENDENT = {
    "int_add": "integer add",
    "int_minmax": "integer min or max",
    "float_minmax": "float min or max",
    "incdec": "increment or decrement",
    "bitop": "bit operation",
}


def verdict(
    atomics: Mapping[str, int],
    loops: Iterable[tuple[Verdict, str]] = (),
    uses_old_sum: bool = False,
    initializing: Mapping[str, int] = MappingProxyType({}),
) -> tuple[Verdict, str]:
    """Return (verdict, reason) for a kernel; "yes": the order of the threads can change the result.

    atomics: {kind: number of instructions}.  loops: the (verdict, reason) of each compare-and-swap.
    uses_old_sum: the old value of an integer add is used, perhaps as an index to write to.  The sum does not depend on
    the order, but the old values do, so the reason mentions it.
    initializing: {kind: number of exchanges} of those that initialize a value to the same constant in all threads.
    """
    reasons_by_verdict: dict[Verdict, list[str]] = {"yes": [], "unresolved": [], "no": []}
    for kind in sorted(atomics):
        base, space = kind.removesuffix("_shared"), " in shared memory" if kind.endswith("_shared") else ""
        if base.startswith(_FLOAT_ADD):
            reasons_by_verdict["yes"].append(f"adds {base.removeprefix(_FLOAT_ADD)} atomically{space}")
        elif base == "exch" and atomics[kind] > initializing.get(kind, 0):
            reasons_by_verdict["unresolved"].append(f"exchange{space}: which value stays depends on the order")
        elif base in _ORDER_INDEPENDENT:
            reasons_by_verdict["no"].append(_ORDER_INDEPENDENT[base] + space)
    if uses_old_sum:
        reasons_by_verdict["no"].append("the integer add's old value is used")
    for loop_verdict, reason in sorted(set(loops)):
        reasons_by_verdict[loop_verdict].append(reason)
    for kernel_verdict, reasons in reasons_by_verdict.items():
        if reasons:
            return kernel_verdict, "; ".join(reasons)
    return "no", "no atomic instruction"
