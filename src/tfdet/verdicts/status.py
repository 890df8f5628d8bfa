"""The status: for each cell the verdict of the evidence, the claims of documents, and the findings of audits.

A cell is one environment, device, source of nondeterminism and solution.  An audit reads the binaries of a build.
"""

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
from tfdet.verdicts.infer import NO_DIFFERENCE_VERDICTS, CellKey, InferredCell, Verdict

# {claimed outcome: the verdicts that contradict it}
_CONTRADICTING = {
    "deterministic": (Verdict.NONDETERMINISTIC, Verdict.RAISES),
    "nondeterministic": (Verdict.DETERMINISTIC,),
    "raises": (Verdict.NONDETERMINISTIC, *NO_DIFFERENCE_VERDICTS),
}

# Pairs of verdicts of the same cell, by a GPU and its emulation or by two machines, that contradict each other.
CONFLICTING_VERDICTS = [
    *({Verdict.NONDETERMINISTIC, other} for other in (*NO_DIFFERENCE_VERDICTS, Verdict.RAISES)),
    *({Verdict.RAISES, other} for other in NO_DIFFERENCE_VERDICTS),
]


def _may_gpu_have_missed(gpu: InferredCell, emulated: InferredCell) -> bool:
    """Return whether a schedule differed, but the GPU's runs were equal without a control, which proves nothing."""
    return emulated.verdict is Verdict.NONDETERMINISTIC and gpu.verdict in (Verdict.NOT_SHOWN, Verdict.TOO_FEW)


def _have_other_cases(first: InferredCell, second: InferredCell) -> bool:
    """Return whether one cell has equal runs only of cases that do not decide the verdict of the other."""
    needs_no_control = {Verdict.NOT_SHOWN, Verdict.SCHEDULE_INDEPENDENT} & {first.verdict, second.verdict}
    return bool(needs_no_control) and first.deciding_cases.isdisjoint(second.deciding_cases)


def _do_conflict(gpu: InferredCell, emulated: InferredCell) -> bool:
    if {gpu.verdict, emulated.verdict} not in CONFLICTING_VERDICTS:
        return False
    return not _may_gpu_have_missed(gpu, emulated) and not _have_other_cases(gpu, emulated)


@dataclass(frozen=True)
class StatusCell:
    """A cell with the claims and the audit finding on it.

    inferred: the verdict of its records alone.  claimed_outcome: the combined outcome of the claims, `no-solution` if
    documents say that there is none.
    finding: the audit finding on the source in that environment.  audited: whether the finding backs this cell.
    evidence_kind: whether records of its device are measured or emulated.
    """

    key: CellKey
    inferred: InferredCell
    claims: tuple[Claim, ...]
    claimed_outcome: str | None
    finding: AuditFinding | None = None
    audited: bool = False
    evidence_kind: EvidenceKind = "measured"

    @property
    def backing(self) -> str:
        """The strongest evidence: measured or emulated, then audited, then documented; empty if there is none."""
        if self.inferred.verdict not in (Verdict.BLANK, Verdict.STALE):
            return self.evidence_kind
        if self.audited:
            return "audited"
        return "documented" if self.claims else ""

    @property
    def was_run(self) -> bool:
        """Whether the cell has records of runs, measured or emulated."""
        return self.backing in get_args(EvidenceKind)

    @property
    def backing_text(self) -> str:
        """The backing, with the number of machines and the signers if it is measured."""
        if self.backing != "measured":
            return self.backing
        number = self.inferred.machines
        return f"measured by {'a single machine' if number == 1 else f'{number} machines'}, {self.signed_text}"

    @property
    def signed_text(self) -> str:
        """The signers of the records, and whether they agree."""
        cell = self.inferred
        if cell.signers_conflict:
            return "signers disagree: " + "; ".join(
                f"{signer.signer} says {signer.verdict} ({signer.differed} of {signer.runs} runs differed)"
                for signer in cell.by_signer
            )
        if cell.verified:
            best = min(cell.agreements, key=lambda agreement: (agreement.on, -len(agreement.cases)))
            more = "" if len(cell.agreements) == 1 else f"; {len(cell.agreements)} pairs of signers agree"
            return f"verified: {' and '.join(best.signers)} say the same, by {best.text}{more}"
        return f"signed by {' and '.join(signer.signer for signer in cell.by_signer)}" if cell.signed else "unsigned"

    @property
    def contradiction(self) -> str | None:
        """A text on how the evidence contradicts the claim; None if it does not."""
        if self.claimed_outcome is None or self.inferred.verdict not in _CONTRADICTING.get(self.claimed_outcome, ()):
            return None
        # partly: only some calls raise.
        if self.inferred.verdict is not Verdict.NONDETERMINISTIC and any(claim.partly for claim in self.claims):
            return None
        return self.contradiction_text(f"{self.backing} {self.inferred.verdict}")

    def contradiction_text(self, evidence: str) -> str:
        """Return the message that evidence, described by a text, contradicts the claim."""
        cited = next(claim.cite[0] for claim in self.claims if claim.outcome == self.claimed_outcome)
        where = f"{self.key.source} under {self.key.solution} in {self.key.environment} on {self.key.device}"
        return f"{where}: claimed {self.claimed_outcome} ({cited}), {evidence}"

    def as_json(self) -> dict[str, Any]:
        bound = self.inferred.bound95
        return {
            **self.key._asdict(),
            "verdict": str(self.inferred.verdict),
            "runs": self.inferred.runs,
            "differed": self.inferred.differed,
            "bound95": bound,
            "time_ratio": self.inferred.time_ratio,
            "backing": self.backing,
            "claim": self.claimed_outcome,
            "proven": self.inferred.controls_differed,  # cases that differed without the solution
            "cases": self.inferred.cases,
            "machines": self.inferred.machines,
            "machines_agreeing": self.inferred.agreeing_machines,
            "signed": self.inferred.signed,
            "signers_agreeing": self.inferred.agreeing_signers,
            "agreements": [agreement.as_json() for agreement in self.inferred.agreements],
            "verified": self.inferred.verified,
            "variants": {
                variant: {"verdict": str(part.verdict), "runs": part.runs, "differed": part.differed}
                for variant, part in self.inferred.variants.items()
            },
            "disagreement": [signer.as_json() for signer in self.inferred.by_signer]
            if self.inferred.signers_conflict
            else [],
            "proof": self.inferred.proof.as_json() if self.inferred.proof else None,
            "audit": self.finding.as_json() if self.finding else None,
        }


def _is_known_to_documents(solution: Solution) -> bool:
    """Return whether a document that says that there is no solution could have named this one."""
    return solution.applies_to_all_ops and not solution.is_project_patch


@dataclass(frozen=True)
class Status:
    """The matrix with all evidence.

    verdicts: {cell: its verdict} of the cells that were run.  audits: {environment: its current audit}.
    stale_audits: environments whose audit was made by another version of the scanner.
    """

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
        claimed_outcome = combine_claims(claims)
        finding = self.finding(key.environment, key.source) if device == GPU else None
        audited = key.device == GPU and self._audited(key, claimed_outcome, finding)
        evidence_kind = self.matrix.devices.evidence_kind(key.device)
        return StatusCell(key, self.verdict(key), tuple(claims), claimed_outcome, finding, audited, evidence_kind)

    def finding(self, environment: str, source: str) -> AuditFinding | None:
        """Return the audit finding on a source in an environment; None without an audit or kernels."""
        place = environment, source
        if place not in self._findings:
            audited, source_model = self.audits.get(environment), self.matrix.source(source)
            is_same_framework = source_model.framework == self.matrix.environment(environment).framework
            self._findings[place] = (
                audited.finding(source_model.audit) if audited and source_model.audit and is_same_framework else None
            )
        return self._findings[place]

    def _audited(self, key: CellKey, claimed_outcome: str | None, finding: AuditFinding | None) -> bool:
        """Return whether the audit backs a cell; an audit never shows that a solution makes an op deterministic.

        Order-dependent atomics back a cell if the op reaches them; their absence does if the op executes these kernels.
        """
        audit = self.matrix.source(key.source).audit
        if claimed_outcome == "raises" and audit and key.environment in self.audits:
            return bool(self.audits[key.environment].refusal_messages(audit))
        if finding is None or finding.kind in ("not shipped", "unresolved"):
            return False
        if key.solution != NONE:
            return finding.shows_order_dependence and claimed_outcome == "no-solution"
        if finding.kind == "order-dependent":
            return finding.shows_order_dependence and claimed_outcome in (None, "nondeterministic")
        return finding.reach.how != "not reached" and claimed_outcome != "nondeterministic"

    @cached_property
    def cells(self) -> list[StatusCell]:
        """Every cell that is measured, claimed or audited, in the order of the tables."""
        keys = {key for key in self.verdicts if self._is_known(key)}
        keys |= set(self._claimed_keys())
        keys |= set(self._audited_keys())
        return [self.cell(key) for key in sorted(keys, key=self.sort_key)]

    @cached_property
    def gpus(self) -> list[str]:
        """The GPU models that measured something."""
        return self._gpus("measured")

    @cached_property
    def emulated_models(self) -> list[str]:
        """The models of the virtual GPU that ran something."""
        return self._gpus("emulated")

    def _gpus(self, evidence_kind: EvidenceKind) -> list[str]:
        devices = self.matrix.devices
        models = {key.device for key in self.verdicts if devices.claim_device(key.device) == GPU}
        return sorted(model for model in models if devices.evidence_kind(model) == evidence_kind)

    @cached_property
    def measured_models(self) -> list[str]:
        """All models that measured something; the CPU is always included."""
        return [CPU, *self.gpus]

    def contradictions(self) -> list[str]:
        """Return messages about all claims, proofs and emulated cells that the evidence contradicts."""
        messages = [text for cell in self.cells if (text := cell.contradiction)]
        claim_device = self.matrix.devices.claim_device
        solved = {
            (
                cell.key.environment,
                claim_device(cell.key.device),
                cell.key.source,
            ): f"{cell.backing} deterministic under {cell.key.solution}"
            for cell in self.cells
            if cell.inferred.is_shown_deterministic and _is_known_to_documents(self.matrix.solutions[cell.key.solution])
        }
        for cell in self.cells:
            place = (cell.key.environment, claim_device(cell.key.device), cell.key.source)
            if cell.claimed_outcome == "no-solution" and place in solved:
                messages.append(cell.contradiction_text(solved[place]))
        return [*messages, *self._disagreements(), *self._false_proofs()]

    def _false_proofs(self) -> Iterator[str]:
        """Yield messages about cases that are proved, but differed on the virtual GPU or on a GPU."""
        for cell in self.cells:
            if cell.inferred.proof is None:
                continue
            key, proof = cell.key, cell.inferred.proof
            differing = dict.fromkeys(proof.contradicted, key.device)
            for gpu in self.gpus:
                measured = self.verdict(key._replace(device=gpu))
                if measured.verdict is Verdict.NONDETERMINISTIC:
                    differing |= dict.fromkeys(sorted(proof.proved_cases & measured.deciding_cases), gpu)
            for case, device in differing.items():
                yield (
                    f"{key.source} under {key.solution} in {key.environment}: {case} is proved on {key.device} to be "
                    f"the same in every order, and differed on {device}"
                )

    def _disagreements(self) -> Iterator[str]:
        """Yield messages about cells whose verdicts on a GPU and on the virtual GPU contradict each other."""
        for gpu in self.gpus:
            for key in (key for key in self.verdicts if key.device == gpu):
                for model in self.emulated_models:
                    measured, emulated = self.verdict(key), self.verdict(key._replace(device=model))
                    if _do_conflict(measured, emulated):
                        yield (
                            f"{key.source} under {key.solution} in {key.environment}: "
                            f"{gpu} measured {measured.verdict}, {model} emulated {emulated.verdict}"
                        )

    def _is_known(self, key: CellKey) -> bool:
        matrix = self.matrix
        return (
            key.environment in matrix.environments and key.source in matrix.sources and key.solution in matrix.solutions
        )

    def _audited_keys(self) -> Iterable[CellKey]:
        """Yield the cells without a solution that an audit backs."""
        for environment in self.audits.keys() & self.matrix.environments.keys():
            for source in self.matrix.sources:
                key = CellKey(environment, GPU, source, NONE)
                if self.finding(environment, source) is not None and self.cell(key).audited:
                    yield key

    def _claimed_keys(self) -> Iterable[CellKey]:
        """Yield the cells of all claims; claims on GPUs have the device `gpu`, beside the models that were measured."""
        for source_key, source in self.matrix.sources.items():
            for claim in source.claims:
                for key, environment in self.matrix.environments.items():
                    if claim.covers(environment):
                        for solution in claim.solutions:
                            yield CellKey(key, claim.device, source_key, solution)

    def sort_key(self, key: CellKey) -> tuple[Any, ...]:
        source = self.matrix.sources[key.source]
        return (
            source.group,
            source.order,
            key.source,
            natural_sort_key(key.environment),
            key.device,
            self.matrix.solutions[key.solution].order,
        )
