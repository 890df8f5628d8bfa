"""Read records as strictly as the models of records.py do, but faster, as a store can have a million records.

The fields are explained at the models of the same names there.  All readers of stored files use this module.  A line
that it does not accept is passed to `records.parse`, whose error says why.  Both libraries are needed: msgspec takes
about a third of pydantic's CPU time, and only pydantic's errors name each invalid field, for TOML files, too.
tests/host/store/test_store_readers.py checks that both accept the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tfdet.base.errors import DataError
from tfdet.base.untrusted import read_lines
from tfdet.store import records
from tfdet.store.record_rules import RecordFacts, check_times, contradictions, device_choices
from tfdet.store.records import FILE_OF_RECORDS, MAX_LINE_BYTES, Observation, Record, is_intact, parse
from tfdet_common.variables import CALLER_VARIABLES

_Short = Annotated[str, Meta(max_length=600)]  # without control characters, which `_is_plain` checks
_Key: TypeAlias = str  # checked by `_are_names_valid`: a pattern for each field would take half of the time
_Hex: TypeAlias = str
_Count = Annotated[int, Meta(ge=0)]
_Parts = Annotated[list[_Short], Meta(max_length=4096)]
_Seconds = Annotated[float, Meta(ge=0)]


class _Part(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """An object of a record, without unknown fields.  A field with the value UNSET is absent, which is not null."""


class Axes(NamedTuple):
    """A virtual GPU's number of multiprocessors, and the seed of its allocations' addresses; None: the default.

    The fields have the names of the details (virtual_gpu.AXIS_VARIABLES).
    """

    multiprocessors: int | None = None
    placement: int | None = None


DEFAULT_AXES = Axes()


class DeviceSummary(_Part, frozen=True, gc=False):
    """A record's device."""

    kind: _Key
    model: _Key
    details: dict[_Key, _Short | _Count | Annotated[list[_Short], Meta(max_length=64)]] | UnsetType | None = UNSET

    @property
    def axes(self) -> Axes:
        """What the caller chose of a virtual GPU."""
        if not self.details:
            return DEFAULT_AXES
        multiprocessors, placement = map(self.details.get, Axes._fields)
        return Axes(_int_or_none(multiprocessors), _int_or_none(placement))

    @property
    def sources(self) -> str:
        """The digest of a virtual GPU's source code; empty for another device."""
        return str((self.details or {}).get("sources", ""))


def _int_or_none(value: object) -> int | None:
    return value if isinstance(value, int) else None


class ProofReason(_Part, frozen=True, gc=False):
    reason: _Key
    lines: Annotated[list[_Count], Meta(max_length=2)]
    launches: _Count


class KernelProof(_Part, frozen=True, gc=False):
    name: _Short
    launches: Annotated[int, Meta(ge=1)]
    proved: _Count
    rules: Annotated[list[_Key], Meta(max_length=16)]
    reasons: Annotated[list[ProofReason], Meta(max_length=16)]


class HostReason(_Part, frozen=True, gc=False):
    operation: _Short
    reason: _Key
    times: Annotated[int, Meta(ge=1)]


class Proof(_Part, frozen=True, gc=False):
    """A record's proof."""

    axes: Annotated[list[Literal["schedule", "placement", "device-size"]], Meta(min_length=1, max_length=3)]
    holds_for: Literal["input", "shape"]
    observed: Annotated[list[_Short], Meta(max_length=64)]
    kernels: Annotated[list[KernelProof], Meta(max_length=128)]
    host: Annotated[list[HostReason], Meta(max_length=64)]

    @property
    def is_proved(self) -> bool:
        """Whether no order of execution gives other bytes."""
        return bool(self.kernels) and not self.host and all(kernel.proved == kernel.launches for kernel in self.kernels)

    @property
    def reasons(self) -> frozenset[str]:
        """The keys of the reasons why it is not proved; empty if it is."""
        kernel_reasons = {proof_reason.reason for kernel in self.kernels for proof_reason in kernel.reasons}
        return frozenset(kernel_reasons | {host_reason.reason for host_reason in self.host})

    @property
    def names(self) -> frozenset[str]:
        """All reasons and rules, which must have the form of keys."""
        return self.reasons.union(rule for kernel in self.kernels for rule in kernel.rules)

    @property
    def is_possible(self) -> bool:
        """Whether launches and reasons fit each other, by the rules of `Record._check_proof` except those on runs."""
        is_consistent = all(
            kernel.proved <= kernel.launches and (kernel.proved < kernel.launches) == bool(kernel.reasons)
            for kernel in self.kernels
        )
        return is_consistent and bool(self.kernels or self.host)


class RecordSummary(msgspec.Struct, frozen=True, gc=False):
    """The fields of a record from which verdicts are inferred."""

    environment: str
    device: DeviceSummary
    source: str
    case: str
    machine: str
    solution: str
    case_hash: str
    observation: Observation
    runs: int
    differed: int
    seconds: float | None = msgspec.field(name="median_seconds")
    digests: list[str] = []
    proof: Proof | UnsetType | None = UNSET

    @property
    def model(self) -> str:
        """The device's part of a cell's key."""
        return self.device.model


class _Framework(_Part, frozen=True, gc=False):
    name: _Key
    version: _Short


class _Bundle(_Part, frozen=True, gc=False):
    manifest: _Hex
    compute_capability: _Short | None
    trimmed: _Parts
    stubbed: _Parts
    left_out: _Parts
    from_host: _Parts


class _Stack(_Part, frozen=True, gc=False):
    python: _Short
    numpy: _Short
    keras: _Short | None
    cuda: _Short | None
    cudnn: _Short | None
    driver: _Short | None
    image: _Short | None
    image_digest: _Short | None
    engine: _Short
    os: _Short
    cpu: _Short
    cores: _Count
    gpu: _Short | None
    compute_capability: _Short | None
    gpu_uuid_hash: _Hex | None
    bundle: _Bundle | UnsetType | None = UNSET


class _GpuReading(_Part, frozen=True, gc=False):
    driver: _Short | None
    sm_mhz: _Count | None
    memory_mhz: _Count | None
    celsius: int | None
    performance_state: _Count | None
    throttle_reasons: _Count | None
    ecc: bool | None
    ecc_errors: _Count | None
    mig: bool | None


class _GpuStates(_Part, frozen=True, gc=False):
    before: _GpuReading
    after: _GpuReading


class _Ranks(_Part, frozen=True, gc=False):
    number: _Count
    launcher: _Short
    transport: _Short
    library: _Short | None
    variables: dict[_Short, _Short]
    differed: list[_Count]
    outputs: dict[_Short, _Count]
    agreed: _Count


class _CaseFailure(_Part, frozen=True, gc=False):
    kind: Literal["raises", "unsupported", "crashed", "timed-out"]
    type: _Short
    message: _Short
    where: _Short | None
    output: _Short | UnsetType | None = UNSET


class _FirstDifference(_Part, frozen=True, gc=False):
    relaunch: _Count
    repeat: _Count


class FastRecord(RecordSummary, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """A whole record."""

    schema: Literal[2]
    environment: _Key
    framework: _Framework
    device: DeviceSummary
    source: _Key
    case: _Key
    mode: Literal["eager", "function", "session", "jit", "xla", "compiled", "host"]
    solution: _Key
    case_hash: _Hex
    repeats: _Count
    relaunches: _Count
    runs: _Count
    differed: _Count
    distinct: _Count
    first_differing: _FirstDifference | None
    max_ulp: _Count | None
    max_absolute: _Seconds | None
    digests: Annotated[list[_Hex], Meta(max_length=16)]
    seconds: _Seconds | None = msgspec.field(name="median_seconds")
    ran_on: Annotated[list[_Short], Meta(max_length=64)]
    error: _CaseFailure | None
    stack: _Stack
    machine: _Hex
    threads: _Count
    determinism_environment: Annotated[dict[_Short, _Short], Meta(max_length=64)]
    kernels: Annotated[list[_Short], Meta(max_length=32)] | UnsetType | None = UNSET
    contention: _Short | UnsetType | None = UNSET
    gpu_state: _GpuStates | UnsetType | None = UNSET
    ranks: _Ranks | UnsetType | None = UNSET
    proof: Proof | UnsetType | None = UNSET
    started: str
    duration_seconds: _Seconds
    checksum: str

    @property
    def provenance_key(self) -> tuple[str, ...]:
        """The machine and software stack of this record, as `Record.provenance_key`."""
        stack, variables = self.stack, self.determinism_environment
        callers = " ".join(f"{name}={variables.get(name, '')}" for name in CALLER_VARIABLES)  # the user may set these
        return (self.machine, stack.engine, self.framework.version, stack.python, stack.numpy, stack.driver or "",
                stack.image_digest or "", stack.bundle.manifest if stack.bundle else "", callers,
                device_choices(self.device.details))  # fmt: skip

    @property
    def sort_key(self) -> tuple[str, ...]:
        """The key by which the records of a file are sorted."""
        return (self.source, self.case, self.solution, *self.provenance_key, self.case_hash, self.observation)


class RecordLine(NamedTuple):
    """A record, and its line as it was read."""

    record: FastRecord
    line: bytes


FindFaults = Callable[[FastRecord], "list[str]"]  # returns messages: why the record does not fit the matrix

_decode = msgspec.json.Decoder(FastRecord).decode
_is_key = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,119}").fullmatch
_is_digest = re.compile("[0-9a-f]{64}").fullmatch
_is_hex = re.compile("[0-9a-f]{1,64}").fullmatch


@lru_cache(maxsize=1 << 16)  # many records, few machines
def _are_provenance_names(machine: str, gpu_hash: str | None, manifest: str | None, *keys: str) -> bool:
    hashes = [(machine, 12), (gpu_hash, 12), (manifest, len(manifest or ""))]
    return all(_is_hash(text, length) for text, length in hashes if text is not None) and all(map(_is_key, keys))


@lru_cache(maxsize=1 << 16)  # many records, few cases
def _are_case_names(case_hash: str, *keys: str) -> bool:
    return _is_hash(case_hash, 16) and all(map(_is_key, keys))


def _is_hash(text: str, length: int) -> bool:
    return _is_hex(text) is not None and len(text) == length


def read_line(line: bytes) -> FastRecord:
    """Return the record of a line; raise ValueError with the reason if it is not a valid record."""
    try:
        record = _decode(line)
        is_unchanged = _is_plain(line) and is_intact(line, record.checksum) and _is_canonical(record, line)
        # Records with ranks are checked by `parse` alone.
        if is_unchanged and not record.ranks and _are_names_valid(record) and _is_possible(record):
            return record
    except (ValueError, OverflowError, RecursionError):  # msgspec's errors are ValueErrors
        parse(line)
        raise
    parse(line)
    return record


def _is_plain(line: bytes) -> bool:
    """Return whether a line is one JSON object in ASCII without escapes, which could hide a control character."""
    is_object = line.startswith(b'{"') and line.endswith((b"}\n", b"}"))
    return is_object and len(line) <= MAX_LINE_BYTES and line.isascii() and b"\\" not in line and b"\x7f" not in line


def _float_as_written(text: str) -> msgspec.Raw:
    """Return a float unchanged; raise ValueError if Python would write it in another form."""
    if repr(float(text)) != text:
        raise ValueError(f"{text} is written in another way")
    return msgspec.Raw(text.encode("ascii"))


_decode_any = msgspec.json.Decoder(float_hook=_float_as_written).decode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_FLOATS = (b'"median_seconds":', b'"max_absolute":', b'"duration_seconds":')  # the fields with a float
SMALLEST_DECIMAL, LARGEST_DECIMAL = 1e-4, 1e16  # the range that Python writes without an exponent
LARGE_NUMBER = 10**19  # the smallest number with 20 digits
_has_large_number = re.compile(rb"[:,\[]\d{20}").search


def _is_canonical(record: FastRecord, line: bytes) -> bool:
    """Return whether a line has sorted keys, none twice, no blanks, and numbers in one form.

    Then the bytes that were hashed have only one meaning.  For most records it suffices to encode the record again and
    compare; the others need a slower check.
    """
    content = line.removesuffix(b"\n")
    if _may_have_large_number(record) and _has_large_number(line):
        return False
    return _encode_as_probe(record) == content or _encode_sorted(_decode_any(line)) == content


def _may_have_large_number(record: FastRecord) -> bool:
    """Return whether a number may need more than 64 bits; for other counts `_is_possible` excludes that."""
    has_optional_part = record.gpu_state or record.ranks or record.device.details or record.proof
    return bool(has_optional_part) or max(record.max_ulp or 0, record.threads, record.stack.cores) >= LARGE_NUMBER


def _encode_as_probe(record: FastRecord) -> bytes:
    """Encode a record as the probe, its writer, does: msgspec and Python write numbers with an exponent differently."""
    text = _encode_sorted(record)
    numbers = (record.seconds, record.max_absolute, record.duration_seconds)
    for name, number in zip(_FLOATS, numbers, strict=True):
        if number and not SMALLEST_DECIMAL <= number < LARGEST_DECIMAL:
            text = text.replace(name + _encode_sorted(number), name + repr(number).encode("ascii"), 1)
    return text


def _are_names_valid(record: FastRecord) -> bool:
    """Return whether all keys and hashes of a record have the form of keys and hashes."""
    device, bundle = record.device, record.stack.bundle
    manifest = bundle.manifest if bundle else None
    provenance_valid = _are_provenance_names(
        record.machine, record.stack.gpu_uuid_hash, manifest, record.environment, device.kind, device.model,
        record.framework.name, *(device.details or ()),
    )  # fmt: skip
    cases_valid = _are_case_names(record.case_hash, record.source, record.case, record.solution)
    proof_names = record.proof.names if record.proof else ()
    return provenance_valid and cases_valid and all(map(_is_digest, record.digests)) and all(map(_is_key, proof_names))


def _is_possible(record: FastRecord) -> bool:
    """Return whether the numbers of a record are possible for a run; `parse` says which are not."""
    first, error, digests, proof = record.first_differing, record.error, record.digests, record.proof
    facts = RecordFacts(
        record.device.kind, record.model, record.observation, record.repeats, record.relaunches, record.runs,
        record.differed, record.distinct, len(digests), (first.relaunch, first.repeat) if first else None,
        record.max_ulp, record.max_absolute, record.seconds is not None, error.kind if error else None,
    )  # fmt: skip
    is_consistent = not (record.ran_on and not record.runs) and (len(digests) < 2 or len(set(digests)) == len(digests))
    is_proof_possible = not proof or (
        record.runs > 0 and proof.is_possible and not (record.differed and proof.is_proved)
    )
    times = check_times(record.started, record.duration_seconds, record.seconds, record.repeats)
    has_possible_times = not any(is_broken for _, is_broken in times)
    return is_consistent and is_proof_possible and not contradictions(facts) and has_possible_times


def to_record_line(record: Record) -> RecordLine:
    line = record.line().encode("ascii")
    return RecordLine(read_line(line), line)


def read_record_lines(path: Path, find_faults: FindFaults | None = None) -> Iterator[RecordLine]:
    """Yield every valid record of a file, then raise DataError with all faulty lines, if there are any."""
    faults: list[str] = []
    for number, line in enumerate(read_lines(path, FILE_OF_RECORDS), 1):
        try:
            row = RecordLine(read_line(line), line)
            if find_faults and (mismatches := find_faults(row.record)):
                raise ValueError("; ".join(mismatches))
        except (ValueError, RecursionError) as error:
            faults.append(f"{path}:{number}: {error}")
            continue
        yield row
    if faults:
        raise DataError("\n".join(faults), "No records were added from this file.")


def to_summary(proof: records.Proof) -> Proof:
    return msgspec.convert(proof.model_dump(), Proof)


def summarize(record: Record) -> RecordSummary:
    device = DeviceSummary(record.device.kind, record.device.model, record.device.details)
    proof = to_summary(record.proof) if record.proof else None
    return RecordSummary(
        record.environment, device, record.source, record.case, record.machine, record.solution, record.case_hash,
        record.observation, record.runs, record.differed, record.median_seconds, record.digests, proof,
    )  # fmt: skip
