"""The status: what the evidence says beside what documents claim, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

from tfdet.matrix.devices import CPU, GPU, EvidenceKind
from tfdet.matrix.load import Matrix, natural_sort_key
from tfdet.matrix.models import NONE, Claim, Solution
from tfdet.matrix.plan import claims_of, combine_claims
from tfdet.verdicts.audit_findings import AuditFinding, AuditIndex
from tfdet.verdicts.infer import EQUAL_VERDICTS, CellKey, InferredCell, Verdict

# A claim, and the verdicts that it cannot live with.
_CONTRADICTING = {
    "deterministic": (Verdict.NONDETERMINISTIC, Verdict.RAISES),
    "nondeterministic": (Verdict.DETERMINISTIC,),
    "raises": (Verdict.NONDETERMINISTIC, *EQUAL_VERDICTS),
}

# What two cannot both show: a card and its emulation, one machine and another.
CONFLICTING_VERDICTS = [
    *({Verdict.NONDETERMINISTIC, other} for other in (*EQUAL_VERDICTS, Verdict.RAISES)),
    *({Verdict.RAISES, other} for other in EQUAL_VERDICTS),
]


def _card_may_have_missed(card: InferredCell, emulated: InferredCell) -> bool:
    """Did a schedule differ, and the card not show it? Equal runs without a control prove nothing."""
    return emulated.verdict is Verdict.NONDETERMINISTIC and card.verdict in (Verdict.NOT_SHOWN, Verdict.TOO_FEW)


def _rest_on_other_cases(one: InferredCell, other: InferredCell) -> bool:
    """Did one run none of the cases in which the other differed or raised? Equal runs of others say nothing of them."""
    return Verdict.NOT_SHOWN in (one.verdict, other.verdict) and one.deciding_cases.isdisjoint(other.deciding_cases)


def _cannot_both_be(card: InferredCell, emulated: InferredCell) -> bool:
    if {card.verdict, emulated.verdict} not in CONFLICTING_VERDICTS:
        return False
    return not _card_may_have_missed(card, emulated) and not _rest_on_other_cases(card, emulated)


@dataclass(frozen=True)
class StatusCell:
    """finding: what that environment's audit found of the source; audited: it backs what this cell says.

    evidence_kind: whether records of its device are measured or emulated.
    """

    key: CellKey
    cell: InferredCell
    claims: tuple[Claim, ...]
    claimed_outcome: str | None
    finding: AuditFinding | None = None
    audited: bool = False
    evidence_kind: EvidenceKind = "measured"

    @property
    def backing(self) -> str:
        """The strongest evidence: measured or emulated, then audited, then documented; empty if there is none."""
        if self.cell.verdict not in (Verdict.BLANK, Verdict.STALE):
            return self.evidence_kind
        if self.audited:
            return "audited"
        return "documented" if self.claims else ""

    @property
    def was_run(self) -> bool:
        """Did something run, on whatever device?"""
        return self.backing in get_args(EvidenceKind)

    @property
    def backing_text(self) -> str:
        """With the number of machines: what a single one says, nobody else has seen."""
        if self.backing != "measured":
            return self.backing
        number = self.cell.machines
        return f"measured by {'a single machine' if number == 1 else f'{number} machines'}, {self.signed_text}"

    @property
    def signed_text(self) -> str:
        """Who vouches for what was seen, and whether they agree: no side is left out."""
        cell = self.cell
        if cell.signers_conflict:
            return "signers disagree: " + "; ".join(
                f"{s.signer} says {s.verdict} ({s.differed} of {s.runs} runs differed)" for s in cell.by_signer
            )
        if cell.verified:
            agreed = min(cell.agreements, key=lambda one: (one.on, -len(one.cases)))
            more = "" if len(cell.agreements) == 1 else f"; {len(cell.agreements)} pairs of signers agree"
            return f"verified: {' and '.join(agreed.signers)} say the same, by {agreed.text}{more}"
        return f"signed by {' and '.join(side.signer for side in cell.by_signer)}" if cell.signed else "unsigned"

    @property
    def contradiction(self) -> str | None:
        """How the evidence contradicts the claim, if it does."""
        if self.claimed_outcome is None or self.cell.verdict not in _CONTRADICTING.get(self.claimed_outcome, ()):
            return None
        if self.cell.verdict is not Verdict.NONDETERMINISTIC and any(claim.partly for claim in self.claims):
            return None
        return self._contradicts(f"{self.backing} {self.cell.verdict}")

    def _contradicts(self, found: str) -> str:
        cited = next(claim.cite[0] for claim in self.claims if claim.outcome == self.claimed_outcome)
        where = f"{self.key.source} under {self.key.solution} in {self.key.environment} on {self.key.device}"
        return f"{where}: claimed {self.claimed_outcome} ({cited}), {found}"

    def as_json(self) -> dict[str, Any]:
        bound = self.cell.bound95
        return {
            **self.key._asdict(),
            "verdict": str(self.cell.verdict),
            "runs": self.cell.runs,
            "differed": self.cell.differed,
            "bound95": bound,
            "time_ratio": self.cell.time_ratio,
            "backing": self.backing,
            "claim": self.claimed_outcome,
            "proven": self.cell.controls_differed,
            "cases": self.cell.cases,
            "machines": self.cell.machines,
            "machines_agreeing": self.cell.agreeing_machines,
            "signed": self.cell.signed,
            "signers_agreeing": self.cell.agreeing_signers,
            "agreements": [one.as_json() for one in self.cell.agreements],
            "verified": self.cell.verified,
            "ways": {
                way: {"verdict": str(part.verdict), "runs": part.runs, "differed": part.differed}
                for way, part in self.cell.variants.items()
            },
            "disagreement": [side.as_json() for side in self.cell.by_signer] if self.cell.signers_conflict else [],
            "proof": self.cell.proof.as_json() if self.cell.proof else None,
            "audit": self.finding.as_json() if self.finding else None,
        }


def _documents_know(solution: Solution) -> bool:
    """Could they have named it where they say that there is no solution?"""
    return solution.applies_to_all_ops and not solution.is_project_patch


@dataclass(frozen=True)
class Status:
    """verdicts: what the evidence says; a cell that is not in it was never run.  audits: the current ones."""

    matrix: Matrix
    verdicts: Mapping[CellKey, InferredCell]
    audits: Mapping[str, AuditIndex] = field(default_factory=dict)
    stale_audits: tuple[str, ...] = ()
    _findings: dict[tuple[str, str], AuditFinding | None] = field(default_factory=dict, repr=False, compare=False)
    _cells: dict[CellKey, StatusCell] = field(init=False, default_factory=dict, repr=False, compare=False)

    def verdict(self, key: CellKey) -> InferredCell:
        return self.verdicts.get(key, InferredCell(Verdict.BLANK))

    def cell(self, key: CellKey) -> StatusCell:
        if key not in self._cells:
            self._cells[key] = self._cell(key)
        return self._cells[key]

    def _cell(self, key: CellKey) -> StatusCell:
        source, environment = self.matrix.source(key.source), self.matrix.environment(key.environment)
        device = self.matrix.devices.claim_device(key.device)
        claims = claims_of(source, environment, device, key.solution)
        says = combine_claims(claims)
        finding = self.finding(key.environment, key.source) if device == GPU else None
        audited = key.device == GPU and self._audited(key, says, finding)
        backs = self.matrix.devices.evidence_kind(key.device)
        return StatusCell(key, self.verdict(key), tuple(claims), says, finding, audited, backs)

    def finding(self, environment: str, source: str) -> AuditFinding | None:
        """What the binaries of an environment hold of a source; None without an audit or a kernel to look for."""
        place = environment, source
        if place not in self._findings:
            audited, what = self.audits.get(environment), self.matrix.source(source)
            same = what.framework == self.matrix.environment(environment).framework
            self._findings[place] = audited.finding(what.audit) if audited and what.audit and same else None
        return self._findings[place]

    def _audited(self, key: CellKey, says: str | None, finding: AuditFinding | None) -> bool:
        """Does the audit speak for this cell?  It never says that something is deterministic by a solution.

        Atomics speak where the op reaches them; that there are none, where the op runs these kernels.
        """
        audit = self.matrix.source(key.source).audit
        if says == "raises" and audit and key.environment in self.audits:
            return bool(self.audits[key.environment].refusal_messages(audit))
        if finding is None or finding.kind in ("not shipped", "unresolved"):
            return False
        if key.solution != NONE:
            return finding.is_conclusive and says == "no-solution"
        if finding.kind == "order-dependent":
            return finding.is_conclusive and says in (None, "nondeterministic")
        return finding.reach.how != "not reached" and says != "nondeterministic"

    @cached_property
    def cells(self) -> list[StatusCell]:
        """Every cell that is measured or claimed, in the order of the tables."""
        keys = {key for key in self.verdicts if self._known(key)}
        keys |= set(self._claimed())
        keys |= set(self._found())
        return [self.cell(key) for key in sorted(keys, key=self._order)]

    @cached_property
    def gpus(self) -> list[str]:
        """The GPU models that measured something."""
        return self._gpus("measured")

    @cached_property
    def emulated_models(self) -> list[str]:
        """The models that stood for a GPU."""
        return self._gpus("emulated")

    def _gpus(self, backing: EvidenceKind) -> list[str]:
        known = self.matrix.devices
        seen = {key.device for key in self.verdicts if known.claim_device(key.device) == GPU}
        return sorted(device for device in seen if known.evidence_kind(device) == backing)

    @cached_property
    def measured_models(self) -> list[str]:
        """All models that measured something; the processor is always there."""
        return [CPU, *self.gpus]

    def contradictions(self) -> list[str]:
        """Every claim that the evidence contradicts, in words."""
        found = [text for cell in self.cells if (text := cell.contradiction)]
        claim_device = self.matrix.devices.claim_device
        solved = {
            (
                c.key.environment,
                claim_device(c.key.device),
                c.key.source,
            ): f"{c.backing} deterministic under {c.key.solution}"
            for c in self.cells
            if c.cell.is_shown_deterministic and _documents_know(self.matrix.solutions[c.key.solution])
        }
        for cell in self.cells:
            place = (cell.key.environment, claim_device(cell.key.device), cell.key.source)
            if cell.claimed_outcome == "no-solution" and place in solved:
                found.append(cell._contradicts(solved[place]))
        return [*found, *self._disagreements(), *self._false_proofs()]

    def _false_proofs(self) -> Iterator[str]:
        """Cases that are proved to be the same in every order, and yet were seen to differ, there or on a GPU."""
        for cell in self.cells:
            if cell.cell.proof is None:
                continue
            key, proof = cell.key, cell.cell.proof
            differing = dict.fromkeys(proof.contradicted, key.device)
            for gpu in self.gpus:
                card = self.verdict(key._replace(device=gpu))
                if card.verdict is Verdict.NONDETERMINISTIC:
                    differing |= dict.fromkeys(sorted(proof.proved_cases & card.deciding_cases), gpu)
            for case, device in differing.items():
                yield (
                    f"{key.source} under {key.solution} in {key.environment}: {case} is proved on {key.device} to be "
                    f"the same in every order, and differed on {device}"
                )

    def _disagreements(self) -> Iterator[str]:
        """Where a card showed what the emulation of its kind did not, or the other way round."""
        for gpu in self.gpus:
            for key in (key for key in self.verdicts if key.device == gpu):
                for model in self.emulated_models:
                    card, other = self.verdict(key), self.verdict(key._replace(device=model))
                    if _cannot_both_be(card, other):
                        yield (
                            f"{key.source} under {key.solution} in {key.environment}: "
                            f"{gpu} measured {card.verdict}, {model} emulated {other.verdict}"
                        )

    def _known(self, key: CellKey) -> bool:
        m = self.matrix
        return key.environment in m.environments and key.source in m.sources and key.solution in m.solutions

    def _found(self) -> Iterable[CellKey]:
        """Under no solution: what an audit has something to say of."""
        for environment in self.audits.keys() & self.matrix.environments.keys():
            for source in self.matrix.sources:
                key = CellKey(environment, GPU, source, NONE)
                if self.finding(environment, source) is not None and self.cell(key).audited:
                    yield key

    def _claimed(self) -> Iterable[CellKey]:
        """Claimed cells; a GPU claim stands under the device `gpu` beside whatever GPUs measured."""
        for source_key, source in self.matrix.sources.items():
            for claim in source.claims:
                for key, environment in self.matrix.environments.items():
                    if claim.covers(environment):
                        for solution in claim.solutions:
                            yield CellKey(key, claim.device, source_key, solution)

    def _order(self, key: CellKey) -> tuple[Any, ...]:
        source = self.matrix.sources[key.source]
        return (
            source.group,
            source.order,
            key.source,
            natural_sort_key(key.environment),
            key.device,
            self.matrix.solutions[key.solution].order,
        )
