"""Records as the host reads them: strict, with checksums, in schema version 2 (written by tfdet_probe.core.record)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PrivateAttr, ValidationError, model_validator

from tfdet.base.errors import DataError
from tfdet.base.strict_json import strict_json
from tfdet.base.untrusted import read_lines
from tfdet.matrix.field_types import StrictModel, format_validation_error
from tfdet.store.record_rules import RecordFacts, check_times, contradictions, device_choices
from tfdet_common.journal import SCHEMA, dump
from tfdet_common.variables import CALLER_VARIABLES

# equal, differs: whether all runs gave the bytes of the reference, the first result; others: the error of the case.
Observation = Literal["equal", "differs", "raises", "unsupported", "crashed", "timed-out"]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]+$", max_length=64)]
MachineHash = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]  # of a machine or a card (tfdet_common.machine)
CaseHash = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]  # tfdet_probe.core.registry
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=120)]
# No control characters, because the text of untrusted records is shown on terminals.
ShortText = Annotated[str, Field(max_length=600, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
NonNegativeInt = Annotated[int, Field(ge=0, le=(1 << 64) - 1)]  # ULP distances and bit masks need 64 bits
NonNegativeSeconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Parts = Annotated[list[ShortText], Field(max_length=4096)]  # names of parts of a bundle
MAX_LINE_BYTES = 1 << 18  # limit for one line; the longest line of the evidence has 5,000 bytes


class Bundle(StrictModel):
    """The differences of a bundled environment from the packages that it was built from.

    Each list has labels of changes.  trimmed: files of which a part is blank, such as code for other GPUs.  stubbed:
    libraries and modules with an empty one in their place.  left_out: what is not packed.  from_host: what the host
    provides.
    """

    manifest: Hash = Field(description="checksum of the bundle's manifest")
    compute_capability: ShortText | None
    trimmed: Parts
    stubbed: Parts
    left_out: Parts
    from_host: Parts


class Framework(StrictModel):
    name: Key
    version: ShortText


class Device(StrictModel):
    """A device.  kind: name of a file of matrix/devices.  model: the kind, or a key that begins with it and a dash."""

    kind: Key
    model: Key
    details: dict[Key, ShortText | NonNegativeInt | Annotated[list[ShortText], Field(max_length=64)]] | None = Field(
        default=None,
        max_length=32,
        description="what this kind of device adds to a record, as its file defines; absent: nothing",
    )


class Stack(StrictModel):
    """Versions of the software and hardware beside the framework; None: unknown."""

    python: ShortText
    numpy: ShortText
    keras: ShortText | None
    cuda: ShortText | None
    cudnn: ShortText | None
    driver: ShortText | None
    image: ShortText | None
    image_digest: ShortText | None
    engine: ShortText
    os: ShortText
    cpu: ShortText
    cores: NonNegativeInt
    gpu: ShortText | None
    compute_capability: ShortText | None
    gpu_uuid_hash: MachineHash | None
    bundle: Bundle | None = Field(default=None, description="absent: the environment was not bundled")


class GpuReading(StrictModel):
    """Values that NVML reported for the GPU; None: not reported."""

    driver: ShortText | None
    sm_mhz: NonNegativeInt | None
    memory_mhz: NonNegativeInt | None
    celsius: int | None
    performance_state: NonNegativeInt | None
    throttle_reasons: NonNegativeInt | None = Field(description="nvmlClocksThrottleReasons, a bit mask")
    ecc: bool | None
    ecc_errors: NonNegativeInt | None = Field(description="number of uncorrected errors since the driver was loaded")
    mig: bool | None


class GpuState(StrictModel):
    before: GpuReading
    after: GpuReading


class Ranks(StrictModel):
    """The ranks of a case of several processes.  A run differs if it differs in any rank."""

    number: Annotated[int, Field(ge=2, le=1024)]
    launcher: ShortText
    transport: ShortText
    library: ShortText | None = Field(description="library that exchanges the tensors, if it is not the framework")
    variables: dict[ShortText, ShortText] = Field(
        max_length=64, description="environment variables that the case sets in all ranks"
    )
    differed: list[NonNegativeInt] = Field(max_length=1024, description="number of runs that differed, for each rank")
    outputs: dict[Annotated[str, Field(pattern=r"^\d{1,6}$")], NonNegativeInt] = Field(
        max_length=1024, description="{index of an output: number of runs in which it differed in any rank}"
    )
    agreed: NonNegativeInt = Field(description="number of runs in which all ranks had the same bytes")


class CaseFailure(StrictModel):
    """The error of a case that gave no result."""

    kind: Literal["raises", "unsupported", "crashed", "timed-out"]
    type: ShortText
    message: ShortText
    where: ShortText | None  # file:line
    output: ShortText | None = None


class ProofReason(StrictModel):
    reason: Key
    lines: list[NonNegativeInt] = Field(
        max_length=2, description="PTX lines, or machine code offsets, of the conflicting instructions"
    )
    launches: NonNegativeInt = Field(description="number of launches that are not proved for this reason")


class KernelProof(StrictModel):
    """The proof results of all launches of one kernel in the observed process."""

    name: ShortText
    launches: Annotated[int, Field(ge=1, le=(1 << 64) - 1)]
    proved: NonNegativeInt = Field(
        description="number of launches that give the same bytes in every order of execution"
    )
    rules: list[Key] = Field(max_length=16, description="rules that proved these launches (vgpu/README.md)")
    reasons: list[ProofReason] = Field(max_length=16, description="why the other launches are not proved")


class HostReason(StrictModel):
    """A copy, fill or call of the host that prevents a proof, and how often."""

    operation: ShortText
    reason: Key
    times: Annotated[int, Field(ge=1, le=(1 << 64) - 1)]


class Proof(StrictModel):
    """The result of VGPU_CHECK=order for the first process.

    The case is proved if kernels ran, all of their launches are proved, and `host` is empty.
    """

    # The order of execution, the addresses of allocations, the number of multiprocessors.
    axes: list[Literal["schedule", "placement", "device-size"]] = Field(
        min_length=1, max_length=3, description="what may vary under the proof; everything else is fixed as observed"
    )
    holds_for: Literal["input", "shape"] = Field(description="these inputs only, or every input of these shapes")
    observed: list[ShortText] = Field(max_length=64, description="schedules under which the case ran")
    kernels: list[KernelProof] = Field(max_length=128)
    host: list[HostReason] = Field(max_length=64, description="host operations that prevent a proof")


def _is_proved(proof: Proof) -> bool:
    return not proof.host and all(kernel.proved == kernel.launches for kernel in proof.kernels)


class FirstDifference(StrictModel):
    relaunch: NonNegativeInt  # number of the process, from 0
    repeat: NonNegativeInt


class Record(StrictModel):
    """One observation with its provenance.  Durations are in seconds, `started` is in UTC."""

    schema_: Literal[2] = Field(alias="schema")
    environment: Key
    framework: Framework
    device: Device
    source: Key  # a known source of nondeterminism, of which the case is one runnable form
    case: Key
    mode: Literal["eager", "function", "session", "jit", "xla", "compiled", "host"]
    solution: Key  # what makes the source deterministic; none: a control
    case_hash: CaseHash
    observation: Observation
    # Repeats in each process, and the number of processes: at most repeats * relaunches runs are compared.
    repeats: NonNegativeInt
    relaunches: NonNegativeInt
    runs: NonNegativeInt = Field(description="number of repeats that were compared with the reference")
    differed: NonNegativeInt
    distinct: NonNegativeInt = Field(description="number of distinct results, including the reference")
    first_differing: FirstDifference | None
    max_ulp: NonNegativeInt | None
    max_absolute: NonNegativeSeconds | None
    digests: list[Digest] = Field(max_length=16)
    median_seconds: NonNegativeSeconds | None
    ran_on: list[ShortText] = Field(max_length=64)  # devices on which the framework placed the ops of the case
    error: CaseFailure | None
    stack: Stack
    machine: MachineHash
    threads: NonNegativeInt = Field(
        description="number of threads that the solution requests; 0: the framework's default"
    )
    # Environment variables: those that the solution sets, and the user's CALLER_VARIABLES.
    determinism_environment: dict[ShortText, ShortText] = Field(max_length=64)
    kernels: list[ShortText] | None = Field(
        default=None, max_length=32, description="CUDA kernels that the profiler reported; absent: none reported"
    )
    contention: ShortText | None = Field(
        default=None, description="load on the device beside every process except the first; absent: no load"
    )
    gpu_state: GpuState | None = None
    ranks: Ranks | None = Field(default=None, description="absent: a case of one process")
    proof: Proof | None = Field(default=None, description="absent: no proof was requested")
    started: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    duration_seconds: NonNegativeSeconds
    checksum: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    @model_validator(mode="after")
    def _check_contradictions(self) -> Record:
        """Raise ValueError if no run can have given these values."""
        faults = [*contradictions(self.facts), *(text for text, is_broken in self._check_details() if is_broken)]
        if faults:
            raise ValueError("; ".join(faults))
        return self

    def _check_details(self) -> list[tuple[str, bool]]:
        """Return rules on fields that no table shows, as (message, whether the rule is broken)."""
        return [
            ("it has a device where it ran, but no run was completed", bool(self.ran_on) and not self.runs),
            ("a digest is there twice", len(set(self.digests)) < len(self.digests)),
            *self._check_ranks(),
            *self._check_proof(),
            *check_times(self.started, self.duration_seconds, self.median_seconds, self.repeats),
        ]

    def _check_ranks(self) -> list[tuple[str, bool]]:
        if self.ranks is None:
            return []
        differed, outputs = self.ranks.differed, self.ranks.outputs.values()
        most, least = sum(differed), max(differed, default=0)
        return [
            ("not as many counts as ranks", len(differed) != self.ranks.number),
            ("its ranks do not differ as often as its runs", not least <= self.differed <= most),
            ("an output that differed in more runs than there are", max(outputs, default=0) > self.differed),
            ("its ranks agreed in more runs than there are", self.ranks.agreed > self.runs),
        ]

    def _check_proof(self) -> list[tuple[str, bool]]:
        if self.proof is None:
            return []
        kernels = self.proof.kernels
        return [
            ("a proof, but no run was completed", not self.runs),
            (
                "a kernel has more launches proved than there were",
                any(kernel.proved > kernel.launches for kernel in kernels),
            ),
            (
                "a launch is not proved, and has no reason",
                any((kernel.proved < kernel.launches) != bool(kernel.reasons) for kernel in kernels),
            ),
            ("all kernels are proved, but its runs differ", bool(self.differed) and _is_proved(self.proof)),
            ("nothing was launched, and that is no reason", not kernels and not self.proof.host),
        ]

    @property
    def facts(self) -> RecordFacts:
        first = self.first_differing
        return RecordFacts(
            self.device.kind, self.device.model, self.observation, self.repeats, self.relaunches, self.runs,
             self.differed, self.distinct, len(self.digests),
            (first.relaunch, first.repeat) if first else None, self.max_ulp, self.max_absolute,
            self.median_seconds is not None, self.error.kind if self.error else None,
        )  # fmt: skip

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        return (self.environment, self.device.model, self.source, self.case, self.solution)

    @property
    def provenance_key(self) -> tuple[str, ...]:
        """The machine and software stack of this record."""
        stack = self.stack
        bundle_manifest = stack.bundle.manifest if stack.bundle else ""
        # Variables that the user may set, such as TF_ENABLE_ONEDNN_OPTS.
        callers = " ".join(f"{name}={self.determinism_environment.get(name, '')}" for name in CALLER_VARIABLES)
        return (self.machine, stack.engine, self.framework.version, stack.python, stack.numpy, stack.driver or "",
                stack.image_digest or "", bundle_manifest, callers, device_choices(self.device.details))  # fmt: skip

    def line(self) -> str:
        """Return the line as the probe wrote it, over whose bytes the checksum was computed."""
        return self._line

    _line: str = PrivateAttr(default="")


_FIELD = b'"checksum":"'
_FIELD_LENGTH = len(_FIELD) + 64 + 2  # 2: the closing quote, and the comma (it is never the last field)


def is_intact(line: bytes, checksum: object) -> bool:
    """Return whether a line matches its checksum, which covers all bytes except the checksum field and the newline.

    checksum: the value that a JSON parser read.  It must be the value of the field that is left out here, since a line
    may contain two such fields.
    """
    start = line.find(_FIELD)
    if start < 0:
        return False
    end = len(line) - line.endswith(b"\n")
    expected = hashlib.sha256(line[:start] + line[start + _FIELD_LENGTH : end]).hexdigest()
    return expected == checksum and line.startswith(expected.encode("ascii"), start + len(_FIELD))


def checksums(path: Path) -> frozenset[str]:
    """Return the checksums that the lines of a file contain, without verification."""
    return frozenset(map(checksum_of, read_lines(path, FILE_OF_RECORDS)))


def checksum_of(line: bytes) -> str:
    start = line.find(_FIELD) + len(_FIELD)
    return line[start : start + 64].decode("ascii", "replace")


FILE_OF_RECORDS = "Name a file of records, one JSON object a line."
_CHECKSUM_MISMATCH = "its checksum does not fit: a record is what ran, it is never edited"
_NOT_CANONICAL = "not written as the probe writes it: sorted keys, no blanks, one line of ASCII"


def parse(line: bytes) -> Record:
    """Parse one line; raise ValueError with the reasons if it is not a valid record.

    The same bytes are hashed, parsed and kept; only the newline at the end is ignored.
    """
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"longer than {MAX_LINE_BYTES:,} bytes, so no record")
    try:
        content = strict_json(line)
    except UnicodeDecodeError:
        raise ValueError("no text, so no record") from None
    except json.JSONDecodeError:
        raise ValueError("no JSON object, so no record") from None
    version = content.get("schema") if isinstance(content, dict) else None
    if type(version) is not int or version != SCHEMA:
        raise ValueError(_version_advice(version))
    faults = [] if is_intact(line, content.get("checksum")) else [_CHECKSUM_MISMATCH]
    try:
        record = Record.model_validate(content)
    except ValidationError as error:
        faults += [format_validation_error(fault, "record") for fault in error.errors()]
    except ValueError as error:
        faults.append(str(error))
    if not faults and dump(content).encode("ascii") != line.removesuffix(b"\n"):
        faults.append(_NOT_CANONICAL)
    if faults:
        raise ValueError("; ".join(faults))
    record._line = line.decode("ascii").removesuffix("\n") + "\n"
    return record


def _version_advice(version: object) -> str:
    if isinstance(version, int) and version > SCHEMA:
        return f"a record of schema {version}, this tfdet reads schema {SCHEMA}: use a newer tfdet"
    return f"a record of schema {version}, this tfdet reads schema {SCHEMA}: run the suite again with this tfdet"


def read_records(path: Path) -> Iterator[Record]:
    """Yield every valid record of a file, then raise DataError with all faulty lines, if there are any."""
    faults: list[str] = []
    for number, line in enumerate(read_lines(path, FILE_OF_RECORDS), 1):
        try:
            yield parse(line)
        except ValueError as error:
            faults.append(f"{path}:{number}: {error}")
    if faults:
        raise DataError("\n".join(faults), "No records were added from this file.")
