"""Can the order in which threads come change a kernel's result?  From its atomics, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tfdet.store.audits import Verdict

_FLOAT_ADD = "float_add_"
_ORDERLESS = {
    "int_add": "integer add",
    "int_minmax": "integer min or max",
    "float_minmax": "float min or max",
    "incdec": "increment or decrement",
    "bitop": "bit operation",
}


def verdict(
    atomics: Mapping[str, int],
    loops: Iterable[tuple[Verdict, str]] = (),
    slots: bool = False,
    started: Mapping[str, int] = MappingProxyType({}),
) -> tuple[Verdict, str]:
    """(verdict, reason) for a kernel's atomics and what was found of each CAS: its own (verdict, reason).

    `slots`: an integer add's old value is used, perhaps as a place to write to.  The sum does not depend on the order,
    the old values do; the reason says so.
    `started`: how many exchanges of a kind set a start value that all threads agree on.
    """
    found: dict[Verdict, list[str]] = {"yes": [], "unresolved": [], "no": []}
    for kind in sorted(atomics):
        base, space = kind.removesuffix("_shared"), " in shared memory" if kind.endswith("_shared") else ""
        if base.startswith(_FLOAT_ADD):
            found["yes"].append(f"adds {base.removeprefix(_FLOAT_ADD)} atomically{space}")
        elif base == "exch" and atomics[kind] > started.get(kind, 0):
            found["unresolved"].append(f"exchange{space}: which value stays depends on the order")
        elif base in _ORDERLESS:
            found["no"].append(_ORDERLESS[base] + space)
    if slots:
        found["no"].append("the integer add's old value is used")
    for loop, reason in sorted(set(loops)):
        found[loop].append(reason)
    for answer, reasons in found.items():
        if reasons:
            return answer, "; ".join(reasons)
    return "no", "no atomic instruction"
