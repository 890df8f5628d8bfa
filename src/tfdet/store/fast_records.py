"""Read records as strictly as the models of records.py, and faster: a store can have a million.

All readers of stored files use this module.  A line that it cannot accept goes to `records.parse`, which says why.
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
from tfdet.store.record_rules import (
    RecordFacts,
    chosen_code,
    contradictions,
    is_plausible_duration,
    is_plausible_time,
)
from tfdet.store.records import FILE_OF_RECORDS, MAX_LINE_BYTES, Observation, Record, is_intact, parse
from tfdet_common.variables import CALLER_VARIABLES

_Short = Annotated[str, Meta(max_length=600)]  # no control characters: see `_is_plain`
_Key: TypeAlias = str  # see `_is_named`: a pattern each would take half of the time
_Hex: TypeAlias = str
_Count = Annotated[int, Meta(ge=0)]
_Parts = Annotated[list[_Short], Meta(max_length=4096)]
_Seconds = Annotated[float, Meta(ge=0)]


class _Part(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """An object of a record, without unknown fields.  A field with the value UNSET is absent, which is not null."""


class DeviceSummary(_Part, frozen=True, gc=False):
    """A record's device."""

    kind: _Key
    model: _Key
    details: dict[_Key, _Short | _Count | Annotated[list[_Short], Meta(max_length=64)]] | UnsetType | None = UNSET


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
        """Does no order of execution give other bytes?"""
        return bool(self.kernels) and not self.host and all(one.proved == one.launches for one in self.kernels)

    @property
    def reasons(self) -> frozenset[str]:
        """Why it is not proved; empty if it is."""
        by_kernels = {why.reason for one in self.kernels for why in one.reasons}
        return frozenset(by_kernels | {one.reason for one in self.host})

    @property
    def names(self) -> frozenset[str]:
        """Words that have the form of keys."""
        return self.reasons.union(rule for one in self.kernels for rule in one.rules)

    @property
    def is_possible(self) -> bool:
        """The rules of `records.Record`, but for that on runs."""
        whole = all(
            one.proved <= one.launches and (one.proved < one.launches) == bool(one.reasons) for one in self.kernels
        )
        return whole and bool(self.kernels or self.host)


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


class _GpuState(_Part, frozen=True, gc=False):
    driver: _Short | None
    sm_mhz: _Count | None
    memory_mhz: _Count | None
    celsius: int | None
    performance_state: _Count | None
    throttle_reasons: _Count | None
    ecc: bool | None
    ecc_errors: _Count | None
    mig: bool | None


class _State(_Part, frozen=True, gc=False):
    before: _GpuState
    after: _GpuState


class _Ranks(_Part, frozen=True, gc=False):
    number: _Count
    launcher: _Short
    transport: _Short
    library: _Short | None
    variables: dict[_Short, _Short]
    differed: list[_Count]
    outputs: dict[_Short, _Count]
    agreed: _Count


class _Error(_Part, frozen=True, gc=False):
    kind: Literal["raises", "unsupported", "crashed", "timed-out"]
    type: _Short
    message: _Short
    where: _Short | None
    output: _Short | UnsetType | None = UNSET


class _First(_Part, frozen=True, gc=False):
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
    first_differing: _First | None
    max_ulp: _Count | None
    max_absolute: _Seconds | None
    digests: Annotated[list[_Hex], Meta(max_length=16)]
    seconds: _Seconds | None = msgspec.field(name="median_seconds")
    ran_on: Annotated[list[_Short], Meta(max_length=64)]
    error: _Error | None
    stack: _Stack
    machine: _Hex
    threads: _Count
    determinism_environment: Annotated[dict[_Short, _Short], Meta(max_length=64)]
    kernels: Annotated[list[_Short], Meta(max_length=32)] | UnsetType | None = UNSET
    contention: _Short | UnsetType | None = UNSET
    gpu_state: _State | UnsetType | None = UNSET
    ranks: _Ranks | UnsetType | None = UNSET
    proof: Proof | UnsetType | None = UNSET
    started: str
    duration_seconds: _Seconds
    checksum: str

    @property
    def provenance_key(self) -> tuple[str, ...]:
        """The same as `Record.provenance_key`."""
        s, told = self.stack, self.determinism_environment
        kernels = " ".join(f"{name}={told.get(name, '')}" for name in CALLER_VARIABLES)
        return (self.machine, s.engine, self.framework.version, s.python, s.numpy, s.driver or "",
                s.image_digest or "", s.bundle.manifest if s.bundle else "", kernels,
                chosen_code(self.device.details))  # fmt: skip

    @property
    def sort_key(self) -> tuple[str, ...]:
        """Its sort key in its file."""
        return (self.source, self.case, self.solution, *self.provenance_key, self.case_hash, self.observation)


class RecordLine(NamedTuple):
    """A record, and its line as it was read."""

    record: FastRecord
    line: bytes


FindFaults = Callable[[FastRecord], "list[str]"]  # why it does not fit the matrix, in words

_decode = msgspec.json.Decoder(FastRecord).decode
_KEY = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,119}").fullmatch
_DIGEST = re.compile("[0-9a-f]{64}").fullmatch
_HEX = re.compile("[0-9a-f]{1,64}").fullmatch


@lru_cache(maxsize=1 << 16)  # many records, few machines
def _are_provenance_names(machine: str, card: str | None, manifest: str | None, *keys: str) -> bool:
    hashes = [(machine, 12), (card, 12), (manifest, len(manifest or ""))]
    return all(_is_hash(text, length) for text, length in hashes if text is not None) and all(map(_KEY, keys))


@lru_cache(maxsize=1 << 16)  # many records, few cases
def _are_case_names(case_hash: str, *keys: str) -> bool:
    return _is_hash(case_hash, 16) and all(map(_KEY, keys))


def _is_hash(text: str, length: int) -> bool:
    return _HEX(text) is not None and len(text) == length


def read_line(line: bytes) -> FastRecord:
    """The record of a line; raise ValueError, which says why, if it is not a valid record."""
    try:
        found = _decode(line)
        intact = _is_plain(line) and is_intact(line, found.checksum) and _is_canonical(found, line)
        if intact and not found.ranks and _is_named(found) and _is_possible(found):
            return found
    except (ValueError, OverflowError, RecursionError):  # msgspec's are ValueErrors
        parse(line)
        raise
    parse(line)
    return found


def _is_plain(line: bytes) -> bool:
    """Is it one JSON object in ASCII without escapes? An escape could hide a control character."""
    whole = line.startswith(b'{"') and line.endswith((b"}\n", b"}"))
    return whole and len(line) <= MAX_LINE_BYTES and line.isascii() and b"\\" not in line and b"\x7f" not in line


def _float_as_written(text: str) -> msgspec.Raw:
    if repr(float(text)) != text:
        raise ValueError(f"{text} is written in another way")
    return msgspec.Raw(text.encode("ascii"))


_decode_any = msgspec.json.Decoder(float_hook=_float_as_written).decode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_FLOATS = (b'"median_seconds":', b'"max_absolute":', b'"duration_seconds":')  # no other field has a number of this type
SMALLEST_DECIMAL, LARGEST_DECIMAL = 1e-4, 1e16  # what Python writes without an exponent
LARGE = 10**19  # of 20 digits
_has_large_number = re.compile(rb"[:,\[]\d{20}").search


def _is_canonical(g: FastRecord, line: bytes) -> bool:
    """Sorted keys, none twice, no blanks, each number in one form: what is understood is what was hashed.

    Most records are, byte for byte, what is written of what was read; of the rest the slow way tells.
    """
    whole = line.removesuffix(b"\n")
    if _may_have_large_number(g) and _has_large_number(line):
        return False
    return _written(g) == whole or _encode_sorted(_decode_any(line)) == whole


def _may_have_large_number(g: FastRecord) -> bool:
    """May one need more than 64 bits?  The other counts no run can have given: see `_is_possible`."""
    more = g.gpu_state or g.ranks or g.device.details or g.proof
    return bool(more) or max(g.max_ulp or 0, g.threads, g.stack.cores) >= LARGE


def _written(g: FastRecord) -> bytes:
    """As the probe would have; where a number needs an exponent msgspec has another text for it than Python."""
    text = _encode_sorted(g)
    numbers = (g.seconds, g.max_absolute, g.duration_seconds)
    for name, number in zip(_FLOATS, numbers, strict=True):
        if number and not SMALLEST_DECIMAL <= number < LARGEST_DECIMAL:
            text = text.replace(name + _encode_sorted(number), name + repr(number).encode("ascii"), 1)
    return text


def _is_named(g: FastRecord) -> bool:
    """Do its keys and hashes have the form of keys and hashes?"""
    device, bundle = g.device, g.stack.bundle
    manifest = bundle.manifest if bundle else None
    provenance_valid = _are_provenance_names(
        g.machine, g.stack.gpu_uuid_hash, manifest, g.environment, device.kind, device.model, g.framework.name,
        *(device.details or ()),
    )  # fmt: skip
    cases_valid = _are_case_names(g.case_hash, g.source, g.case, g.solution)
    words = g.proof.names if g.proof else ()
    return provenance_valid and cases_valid and all(map(_DIGEST, g.digests)) and all(map(_KEY, words))


def _is_possible(g: FastRecord) -> bool:
    """Are its numbers possible for a run?  `parse` says which are not."""
    first, error, digests = g.first_differing, g.error, g.digests
    facts = RecordFacts(g.device.kind, g.model, g.observation, g.repeats, g.relaunches, g.runs, g.differed, g.distinct,
                  len(digests), (first.relaunch, first.repeat) if first else None, g.max_ulp, g.max_absolute,
                  g.seconds is not None, error.kind if error else None)  # fmt: skip
    known = not (g.ran_on and not g.runs) and (len(digests) < 2 or len(set(digests)) == len(digests))
    known = known and (not g.proof or (g.runs > 0 and g.proof.is_possible and not (g.differed and g.proof.is_proved)))
    return known and not contradictions(facts) and is_plausible_time(g.started) and is_plausible_duration(g.seconds)


def to_record_line(record: Record) -> RecordLine:
    line = record.line().encode("ascii")
    return RecordLine(read_line(line), line)


def read_record_lines(path: Path, fits: FindFaults | None = None) -> Iterator[RecordLine]:
    """Every record of a file; DataError names every faulty line, after the last was read."""
    faults: list[str] = []
    for number, line in enumerate(read_lines(path, FILE_OF_RECORDS), 1):
        try:
            row = RecordLine(read_line(line), line)
            if fits and (wrong := fits(row.record)):
                raise ValueError("; ".join(wrong))
        except (ValueError, RecursionError) as error:
            faults.append(f"{path}:{number}: {error}")
            continue
        yield row
    if faults:
        raise DataError("\n".join(faults), "No records were added from this file.")


def to_summary(proof: records.Proof) -> Proof:
    return msgspec.convert(proof.model_dump(), Proof)


def summarize(r: Record) -> RecordSummary:
    device = DeviceSummary(r.device.kind, r.device.model)
    proof = to_summary(r.proof) if r.proof else None
    return RecordSummary(r.environment, device, r.source, r.case, r.machine, r.solution, r.case_hash,
                         r.observation, r.runs, r.differed, r.median_seconds, r.digests, proof)  # fmt: skip
