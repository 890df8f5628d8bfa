"""Do signers, or machines, agree?  On the digest or the observation of the same case, and not on a verdict alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, Literal, NamedTuple

On = Literal["digest", "observation"]


class CaseResult(NamedTuple):
    """What one signer, or machine, showed of one case, for what the verdict rests on.  digests: of its results."""

    signer: str
    case: str
    digests: frozenset[str]


class Agreement(NamedTuple):
    """Two signers, each by machines of their own.  digest: in these cases both had a result with the same bytes."""

    signers: tuple[str, str]
    on: On
    cases: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {"signers": list(self.signers), "on": self.on, "cases": list(self.cases)}

    @property
    def text(self) -> str:
        number = len(self.cases)
        return f"the {self.on} of {'the same case' if number == 1 else f'{number} cases'}"


def count_agreeing(among: Collection[str], told: Iterable[CaseResult]) -> int:
    """How many machines say the same of a case that another says it of, too; one alone agrees with itself."""
    by_case: dict[str, set[str]] = defaultdict(set)
    for machine, case, _ in told:
        by_case[case].add(machine)
    agreed = set().union(*(some for some in by_case.values() if len(some) > 1))
    return len(agreed) or min(1, len(among))


def find_agreements(told: Iterator[CaseResult], machines: Mapping[str, frozenset[str]]) -> Iterator[Agreement]:
    """told: of the same observation, the one that the verdict rests on."""
    shown: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    for signer, case, digests in told:
        shown[signer][case] = shown[signer].get(case, frozenset()) | digests
    for one, other in combinations(sorted(shown), 2):
        both = sorted(shown[one].keys() & shown[other].keys())
        if not both or not machines[one].isdisjoint(machines[other]):
            continue
        alike = [case for case in both if shown[one][case] & shown[other][case]]
        yield Agreement((one, other), "digest" if alike else "observation", tuple(alike or both))
