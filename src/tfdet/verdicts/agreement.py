"""Agreement of signers or machines on the same case, by digest or observation; an equal verdict does not suffice.

A case is one runnable form of a source of nondeterminism; an observation is what its runs showed, such as `equal`.  A
verdict sums up the records of all cases of a cell: one environment, device, source and solution.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, Literal, NamedTuple

On = Literal["digest", "observation"]


class CaseResult(NamedTuple):
    """The result of one signer, or machine, for a case that the verdict depends on.  digests: of its outputs."""

    signer: str
    case: str
    digests: frozenset[str]


class Agreement(NamedTuple):
    """Two signers that agree, with different machines.

    on: `digest` if in all `cases` they have an output with the same bytes, else `observation`.
    """

    signers: tuple[str, str]
    on: On
    cases: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {"signers": list(self.signers), "on": self.on, "cases": list(self.cases)}

    @property
    def text(self) -> str:
        number = len(self.cases)
        return f"the {self.on} of {'the same case' if number == 1 else f'{number} cases'}"


def count_agreeing(machines: Collection[str], results: Iterable[CaseResult]) -> int:
    """Return how many machines share a case with another one; a single machine agrees with itself.

    results: only of machines whose own verdict is that of the cell.
    """
    by_case: dict[str, set[str]] = defaultdict(set)
    for machine, case, _ in results:
        by_case[case].add(machine)
    agreed = set().union(*(group for group in by_case.values() if len(group) > 1))
    return len(agreed) or min(1, len(machines))


def find_agreements(results: Iterator[CaseResult], machines: Mapping[str, frozenset[str]]) -> Iterator[Agreement]:
    """Yield the agreements of each pair of signers whose machines are disjoint.

    results: with the observation that the verdict depends on.  machines: {signer: its machines}.
    """
    digests_by_signer: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    for signer, case, digests in results:
        digests_by_signer[signer][case] = digests_by_signer[signer].get(case, frozenset()) | digests
    for first, second in combinations(sorted(digests_by_signer), 2):
        shared = sorted(digests_by_signer[first].keys() & digests_by_signer[second].keys())
        if not shared or not machines[first].isdisjoint(machines[second]):
            continue
        equal = [case for case in shared if digests_by_signer[first][case] & digests_by_signer[second][case]]
        yield Agreement((first, second), "digest" if equal else "observation", tuple(equal or shared))
