"""What a compare-and-swap (CAS) computes: the instructions between the old value in memory and the new one.

    old = *p;  do { assumed = old;  old = CAS(p, assumed, f(assumed, x)); } while (old != assumed)

Data flow is followed backwards from the new value over every path of the function.  Only instructions that the old
value passes through count; those that compute `x` or an address do not.

Two forms compute nothing: a swap that writes what it compares is a load, and one after which a single thread stores
constants, before an exchange releases the others, initializes a value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from typing import Generic, Protocol, TypeVar

from tfdet.audit.basic_blocks import ControlFlowGraph, controlling_branches, reachable_between, reachable_from
from tfdet.store.audits import Verdict

_MAX_NODES = 2_000
_COPY_ROLES = frozenset({"move", "convert"})
_ORDER_INDEPENDENT = frozenset({"integer", "multiply", "minmax", "select", "bits", "compare"})
_FLOATS = ("f16", "f32", "f64")


class TooLongError(Exception):
    """The data flow is too large to follow."""


Register = TypeVar("Register")


class Dataflow(Protocol[Register]):
    """One function's data flow.  A node is an instruction's number, or -1 - n for the function called at n.

    Roles are "add f32" and the like for float arithmetic, "load" for what comes from memory, and those above.
    """

    def swap(self, at: int) -> tuple[Collection[Register], Collection[Register]]:
        """Registers with the compared and with the new value of the compare-and-swap."""

    def definitions(self, register: Register, at: int) -> set[int]:
        """The nodes whose value the register may hold where instruction `at` starts; may raise TooLongError."""

    def sources(self, at: int) -> Collection[Register]:
        """What goes into the value that the instruction writes."""

    def role(self, at: int) -> str:
        """What the instruction does to its sources."""

    def condition(self, at: int) -> Register | None:
        """The predicate that decides whether the instruction writes, or which of its sources; None without one."""

    def combined_predicates(self, at: int) -> Collection[Register]:
        """The predicates of which the instruction makes another; none if it does something else."""

    def loop_head(self, at: int) -> int:
        """The first instruction of the innermost loop around `at`; `at` itself where there is none."""

    def position(self, at: int) -> int:
        """Where the instruction stands in the function; one of a called function stands where it is called."""

    def constants(self, at: int) -> tuple[Hashable, ...]:
        """The values that the atomic or the store takes (a swap: compared, new), None where threads may differ."""

    def memory(self, at: int) -> str:
        """How it touches memory that threads share: "load", "store", "exchange", "swap", "count", "other", or ""."""

    def blocks(self) -> ControlFlowGraph:
        """The function's basic blocks."""


def classify_cas(flow: Dataflow[Register], at: int) -> tuple[Verdict, str]:
    """Return (verdict, reason) for the compare-and-swap that is instruction number `at`."""
    try:
        return _CasAnalysis(flow, at).verdict()
    except TooLongError:
        return "unresolved", "CAS: too much code to follow"


def classify_atomics(
    flow: Dataflow[Register], swaps: Sequence[int], exchanges: Sequence[int]
) -> tuple[list[tuple[Verdict, str]], set[int]]:
    """Return (verdict, reason) for each compare-and-swap of a function, and the exchanges that initialize a value."""
    settled: set[int] = set()
    found = []
    for at in swaps:
        start = _initializing_exchanges_or_none(flow, at, exchanges)
        settled |= start
        found.append(_START if start else classify_cas(flow, at))
    return found, settled


_START: tuple[Verdict, str] = ("no", "CAS that lets one thread store a start value")


def _initializing_exchanges_or_none(flow: Dataflow[Register], at: int, exchanges: Sequence[int]) -> set[int]:
    """Return no exchange if the data flow is too large: then classify_cas decides."""
    try:
        return _initializing_exchanges(flow, at, exchanges)
    except TooLongError:
        return set()


def _initializing_exchanges(flow: Dataflow[Register], at: int, exchanges: Sequence[int]) -> set[int]:
    """The exchanges that end what the swap guards, if that does no more than to store constants, once.

    Once: nothing that is stored after the swap can be the value that it waits for.
    """
    compared, new = _cas_constants(flow, at)
    behind = reachable_from(flow.blocks(), at)
    ends = [exchange for exchange in exchanges if exchange in behind]
    if None in (compared, new) or compared == new or not ends:
        return set()
    touched = {node: flow.memory(node) for node in behind}
    stored = {flow.constants(node) for node, how in touched.items() if how in ("store", "exchange")}
    guarded = {
        how
        for node in reachable_between(flow.blocks(), at, ends)
        if (how := touched[node]) and not _only_reads(flow, node)
    }
    if stored & {(None,), (compared,)} or "other" in touched.values() or guarded - {"store", "exchange"}:
        return set()
    return set(ends)


def _only_reads(flow: Dataflow[Register], at: int) -> bool:
    if flow.memory(at) != "swap":
        return False
    compared, new = _cas_constants(flow, at)
    return compared is not None and compared == new


def _cas_constants(flow: Dataflow[Register], at: int) -> tuple[Hashable, Hashable]:
    """The constants that a swap compares with and writes; None also where damaged code has no such operand."""
    values = flow.constants(at)
    return (values[0], values[1]) if len(values) == 2 else (None, None)


class _CasAnalysis(Generic[Register]):
    """The data flow into one compare-and-swap."""

    def __init__(self, function: Dataflow[Register], at: int) -> None:
        self.function = function
        self.at = at
        compared, swapped = function.swap(at)
        self.first = 0
        self.merges: list[set[int]] = []  # where a register may hold one of several values
        self.old = {node for node in self._follow(compared, at) if self._role(node) == "load"}
        self.first = min({function.position(node) for node in self.old} | {function.loop_head(at)})
        self.merges.clear()
        self.flow = self._follow(swapped, at)
        self.choices = [merge for merge in self.merges if len(merge) > 1]
        self.passed = self._tainted_nodes()

    def verdict(self) -> tuple[Verdict, str]:
        if not self.passed and _only_reads(self.function, self.at):
            return "no", "CAS that only reads"
        if not self.passed:
            return "unresolved", "CAS whose new value is not computed from the old one: a lock or a flag?"
        roles = {self._role(node) for node in self.passed - self.old} - _COPY_ROLES
        if floats := sorted(role for role in roles if role.endswith(_FLOATS)):
            return "yes", f"CAS loop: {', '.join(floats)}"
        if not all(self._compares_old(node) for node in self.passed - self.old):
            roles.add("selection by another condition")
        for choice in self.choices:
            if choice & self.passed and choice - self.passed and self._is_control_dependent(choice):
                roles.add("select")
            elif choice & self.passed:
                roles |= {self._selection(node) for node in choice - self.passed if node >= 0}
        if any(node < 0 and min(self.old) < -1 - node < self.at for node in self.flow):
            roles.add("a called function")
        if strange := sorted(roles - _ORDER_INDEPENDENT):
            return "unresolved", f"CAS loop: {', '.join(strange)}"
        if not roles:
            return "unresolved", "CAS that only moves values: what it writes is decided by a branch"
        return "no", f"CAS loop: {', '.join(sorted(roles))}"

    def _selection(self, node: int) -> str:
        """How a value takes the place of one computed from the old value."""
        if self.function.condition(node) is None:
            return "selection by a branch"
        return "select" if self._compares_old(node) else "selection by another condition"

    def _is_control_dependent(self, choice: set[int]) -> bool:
        """Does a branch that compares the old value with another decide for each of these values, but for one?"""
        if not all(self._compares_old(node) for node in choice):
            return False
        return sum(not self._reached_by_comparison(node) for node in choice) <= 1

    def _reached_by_comparison(self, node: int) -> bool:
        branches = controlling_branches(self.function.blocks(), node) if node >= 0 else set()
        return bool(branches) and all(self._compares_with_another(branch) for branch in branches)

    def _compares_with_another(self, branch: int) -> bool:
        """That a swap went wrong is seen by comparing old values among themselves: such a branch chooses nothing."""
        condition = self.function.condition(branch)
        tests = self.function.definitions(condition, branch) if condition is not None else set()
        flow: dict[int, set[int]] = {}
        for test in tests:
            if self._role(test) != "compare":
                return False
            flow |= self._follow(self.function.sources(test), test, conditions=True)
        return bool(self.old & flow.keys()) and any(node not in self.old and not flow[node] for node in flow)

    def _role(self, node: int) -> str:
        return self.function.role(node) if node >= 0 else "call"

    def _follow(self, registers: Collection[Register], at: int, conditions: bool = False) -> dict[int, set[int]]:
        """Everything whose value can come into `registers` at `at`: node -> the nodes that go into it.

        What was computed before the old value was there is not followed further.
        conditions: what decides between values goes into them too.
        """
        function = self.function
        flow: dict[int, set[int]] = {}
        first = [function.definitions(register, at) for register in registers]
        self.merges += first
        pending = [node for definitions in first for node in definitions]
        while pending:
            node = pending.pop()
            if node in flow:
                continue
            if len(flow) > _MAX_NODES:
                raise TooLongError
            flow[node] = set()
            if node >= 0 and function.position(node) >= self.first and self._role(node) != "load":
                for register in [*function.sources(node), *(self._deciding(node) if conditions else ())]:
                    definitions = function.definitions(register, node)
                    self.merges.append(definitions)
                    flow[node] |= definitions
                pending += flow[node]
        return flow

    def _deciding(self, node: int) -> list[Register]:
        condition = self.function.condition(node)
        return [*self.function.combined_predicates(node), *([] if condition is None else [condition])]

    def _tainted_nodes(self) -> set[int]:
        """The nodes of the flow that the old value reaches, itself among them."""
        after: dict[int, list[int]] = defaultdict(list)
        for node, inputs in self.flow.items():
            for source in inputs:
                after[source].append(node)
        passed: set[int] = set()
        pending = [node for node in self.old if node in self.flow]
        while pending:
            node = pending.pop()
            if node not in passed:
                passed.add(node)
                pending += after[node]
        return passed

    def _compares_old(self, node: int) -> bool:
        """If this is a selection: is its condition made of comparisons, one of them with the old value?"""
        condition = self.function.condition(node) if node >= 0 else None
        if condition is None:
            return True
        looked = False
        seen: set[int] = set()
        pending = list(self.function.definitions(condition, node))
        while pending:
            test = pending.pop()
            if test in seen:
                continue
            seen.add(test)
            combined = self.function.combined_predicates(test) if test >= 0 else ()
            if combined:
                for predicate in combined:
                    pending += self.function.definitions(predicate, test)
            elif self._role(test) != "compare":
                return False
            elif self.old & self._follow(self.function.sources(test), test, conditions=True).keys():
                looked = True
        return looked
