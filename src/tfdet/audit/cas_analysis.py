"""Analysis of compare-and-swap (CAS) instructions: what a CAS loop computes from the old value in memory.

    old = *p;  do { assumed = old;  old = CAS(p, assumed, f(assumed, x)); } while (old != assumed)

The analysis follows data flow backwards from the new value, over every path of the function.  Only instructions that
take the old value as input, directly or not, count; those that compute `x` or an address do not.

Two forms compute nothing.  A CAS whose new value equals the compared value is a load.  A CAS that lets one thread
store constants, until an atomic exchange releases the other threads, initializes a value.
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

    A role is float arithmetic with its type, such as "add f32"; "load" for a value from memory; "input" for a special
    register, parameter or constant; "unknown" for what is not modeled; or one of _COPY_ROLES and _ORDER_INDEPENDENT.
    """

    def swap(self, at: int) -> tuple[Collection[Register], Collection[Register]]:
        """Return the registers with the compared value and those with the new value of the compare-and-swap."""

    def definitions(self, register: Register, at: int) -> set[int]:
        """Return the nodes whose value the register may hold before instruction `at`; may raise TooLongError."""

    def sources(self, at: int) -> Collection[Register]:
        """Return the registers from which the instruction computes its result."""

    def role(self, at: int) -> str:
        """Return what the instruction does to its sources."""

    def condition(self, at: int) -> Register | None:
        """Return the predicate that guards the instruction or, for a selection, selects its source; None without."""

    def combined_predicates(self, at: int) -> Collection[Register]:
        """Return the predicates that the instruction combines into another; empty for other instructions."""

    def loop_head(self, at: int) -> int:
        """Return the first instruction of the innermost loop around `at`, or `at` outside of loops."""

    def position(self, at: int) -> int:
        """Return the instruction's position in the function; for one of an inlined function, that of the call."""

    def constants(self, at: int) -> tuple[Hashable, ...]:
        """Return the operands of the atomic (a CAS: compared, new) or store; None for values that threads may vary."""

    def memory(self, at: int) -> str:
        """Return its access to shared or global memory: load, store, exchange, swap, count (inc, dec), other, or ""."""

    def blocks(self) -> ControlFlowGraph:
        """Return the function's basic blocks."""


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
    initializing: set[int] = set()
    results = []
    for at in swaps:
        own_exchanges = _initializing_exchanges_or_none(flow, at, exchanges)
        initializing |= own_exchanges
        results.append(_START if own_exchanges else classify_cas(flow, at))
    return results, initializing


_START: tuple[Verdict, str] = ("no", "CAS that lets one thread store a start value")


def _initializing_exchanges_or_none(flow: Dataflow[Register], at: int, exchanges: Sequence[int]) -> set[int]:
    """Return no exchange if the data flow is too large: then classify_cas decides."""
    try:
        return _initializing_exchanges(flow, at, exchanges)
    except TooLongError:
        return set()


def _initializing_exchanges(flow: Dataflow[Register], at: int, exchanges: Sequence[int]) -> set[int]:
    """Return the exchanges that end the code guarded by the CAS, if that code only stores constants, and only once.

    It runs only once if no value that is stored after the CAS equals the value that the CAS compares with.
    """
    compared, new = _cas_constants(flow, at)
    reachable = reachable_from(flow.blocks(), at)
    ends = [exchange for exchange in exchanges if exchange in reachable]
    if None in (compared, new) or compared == new or not ends:
        return set()
    accesses = {node: flow.memory(node) for node in reachable}
    stored = {flow.constants(node) for node, access in accesses.items() if access in ("store", "exchange")}
    guarded = {
        access
        for node in reachable_between(flow.blocks(), at, ends)
        if (access := accesses[node]) and not _only_reads(flow, node)
    }
    if stored & {(None,), (compared,)} or "other" in accesses.values() or guarded - {"store", "exchange"}:
        return set()
    return set(ends)


def _only_reads(flow: Dataflow[Register], at: int) -> bool:
    if flow.memory(at) != "swap":
        return False
    compared, new = _cas_constants(flow, at)
    return compared is not None and compared == new


def _cas_constants(flow: Dataflow[Register], at: int) -> tuple[Hashable, Hashable]:
    """Return the constants that a CAS compares with and writes; None for other values and for damaged code."""
    values = flow.constants(at)
    return (values[0], values[1]) if len(values) == 2 else (None, None)


class _CasAnalysis(Generic[Register]):
    """The data flow into one compare-and-swap."""

    def __init__(self, function: Dataflow[Register], at: int) -> None:
        self.function = function
        self.at = at
        compared, swapped = function.swap(at)
        self.first_position = 0
        self.merges: list[set[int]] = []  # for each use of a register, the nodes whose value it may hold
        self.old_loads = {node for node in self._follow(compared, at) if self._role(node) == "load"}
        self.first_position = min({function.position(node) for node in self.old_loads} | {function.loop_head(at)})
        self.merges.clear()
        self.flow = self._follow(swapped, at)
        self.choices = [merge for merge in self.merges if len(merge) > 1]
        self.tainted = self._tainted_nodes()

    def verdict(self) -> tuple[Verdict, str]:
        """Return (verdict, reason), where the verdict says whether the result depends on the order of threads."""
        if not self.tainted and _only_reads(self.function, self.at):
            return "no", "CAS that only reads"
        if not self.tainted:
            return "unresolved", "CAS whose new value is not computed from the old one: a lock or a flag?"
        roles = {self._role(node) for node in self.tainted - self.old_loads} - _COPY_ROLES
        if floats := sorted(role for role in roles if role.endswith(_FLOATS)):
            return "yes", f"CAS loop: {', '.join(floats)}"
        if not all(self._compares_old(node) for node in self.tainted - self.old_loads):
            roles.add("selection by another condition")
        for choice in self.choices:
            if choice & self.tainted and choice - self.tainted and self._is_control_dependent(choice):
                roles.add("select")
            elif choice & self.tainted:
                roles |= {self._selection(node) for node in choice - self.tainted if node >= 0}
        if any(node < 0 and min(self.old_loads) < -1 - node < self.at for node in self.flow):
            roles.add("a called function")
        if unsupported := sorted(roles - _ORDER_INDEPENDENT):
            return "unresolved", f"CAS loop: {', '.join(unsupported)}"
        if not roles:
            return "unresolved", "CAS that only moves values: what it writes is decided by a branch"
        return "no", f"CAS loop: {', '.join(sorted(roles))}"

    def _selection(self, node: int) -> str:
        """Return how the code chooses between the value of `node` and one that is computed from the old value."""
        if self.function.condition(node) is None:
            return "selection by a branch"
        return "select" if self._compares_old(node) else "selection by another condition"

    def _is_control_dependent(self, choice: set[int]) -> bool:
        """Return whether each of these values is chosen by branches that compare the old value; one may need none."""
        if not all(self._compares_old(node) for node in choice):
            return False
        return sum(not self._reached_by_comparison(node) for node in choice) <= 1

    def _reached_by_comparison(self, node: int) -> bool:
        branches = controlling_branches(self.function.blocks(), node) if node >= 0 else set()
        return bool(branches) and all(self._compares_with_another(branch) for branch in branches)

    def _compares_with_another(self, branch: int) -> bool:
        """Return whether a branch compares the old value with a value that is independent of it.

        A branch that only compares old values with each other tests whether the CAS failed, and selects nothing.
        """
        condition = self.function.condition(branch)
        tests = self.function.definitions(condition, branch) if condition is not None else set()
        flow: dict[int, set[int]] = {}
        for test in tests:
            if self._role(test) != "compare":
                return False
            flow |= self._follow(self.function.sources(test), test, conditions=True)
        return bool(self.old_loads & flow.keys()) and any(
            node not in self.old_loads and not flow[node] for node in flow
        )

    def _role(self, node: int) -> str:
        return self.function.role(node) if node >= 0 else "call"

    def _follow(self, registers: Collection[Register], at: int, conditions: bool = False) -> dict[int, set[int]]:
        """Return {node: its inputs} for all nodes on which `registers` may depend before instruction `at`.

        Nodes before the load of the old value are not followed further.
        conditions: count the predicates that select a value as its inputs, too.
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
            if node >= 0 and function.position(node) >= self.first_position and self._role(node) != "load":
                for register in [*function.sources(node), *(self._selecting_predicates(node) if conditions else ())]:
                    definitions = function.definitions(register, node)
                    self.merges.append(definitions)
                    flow[node] |= definitions
                pending += flow[node]
        return flow

    def _selecting_predicates(self, node: int) -> list[Register]:
        condition = self.function.condition(node)
        return [*self.function.combined_predicates(node), *([] if condition is None else [condition])]

    def _tainted_nodes(self) -> set[int]:
        """Return the nodes of the flow that depend on the old value, including the node that loads it."""
        users: dict[int, list[int]] = defaultdict(list)
        for node, inputs in self.flow.items():
            for source in inputs:
                users[source].append(node)
        tainted: set[int] = set()
        pending = [node for node in self.old_loads if node in self.flow]
        while pending:
            node = pending.pop()
            if node not in tainted:
                tainted.add(node)
                pending += users[node]
        return tainted

    def _compares_old(self, node: int) -> bool:
        """Return whether a selection's condition consists of comparisons, including one with the old value.

        A node that is not a selection counts as such.
        """
        condition = self.function.condition(node) if node >= 0 else None
        if condition is None:
            return True
        has_old_value = False
        visited: set[int] = set()
        pending = list(self.function.definitions(condition, node))
        while pending:
            test = pending.pop()
            if test in visited:
                continue
            visited.add(test)
            combined = self.function.combined_predicates(test) if test >= 0 else ()
            if combined:
                for predicate in combined:
                    pending += self.function.definitions(predicate, test)
            elif self._role(test) != "compare":
                return False
            elif self.old_loads & self._follow(self.function.sources(test), test, conditions=True).keys():
                has_old_value = True
        return has_old_value
