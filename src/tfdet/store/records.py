"""A record as the host reads it: strict, checksummed, schema version 2 (written by tfdet_probe.core.record)."""

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
from tfdet.store import migrate
from tfdet.store.rules import Facts, contradictions, is_possible, is_time
from tfdet_common.journal import SCHEMA, dump
from tfdet_common.variables import CALLER_VARIABLES

Observation = Literal["equal", "differs", "raises", "unsupported", "crashed", "timed-out"]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]+$", max_length=64)]
Name = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]  # of a machine or a card (tfdet_common.machine)
CaseHash = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]  # tfdet_probe.core.registry
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=120)]
# No control characters: what strangers' records say is shown on terminals.
Short = Annotated[str, Field(max_length=600, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
Count = Annotated[int, Field(ge=0, le=(1 << 64) - 1)]  # an ulp distance and a bit mask may be that large
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Parts = Annotated[list[Short], Field(max_length=4096)]  # of a bundle
LONGEST = 1 << 18  # bytes of a line; the longest of the evidence has 5,000


class Bundle(StrictModel):
    """How an environment that was carried to its host differs from the packages that it was made of."""

    manifest: Hash = Field(description="checksum of the bundle's manifest")
    compute_capability: Short | None
    trimmed: Parts
    stubbed: Parts
    left_out: Parts
    from_host: Parts


class Framework(StrictModel):
    name: Key
    version: Short


class Device(StrictModel):
    """kind: a file of matrix/devices.  model: the evidence's key, the kind itself or the kind, a dash and more."""

    kind: Key
    model: Key
    details: dict[Key, Short | Count | Annotated[list[Short], Field(max_length=64)]] | None = Field(
        default=None, max_length=32, description="what its kind adds to a record, as its file says; absent: nothing"
    )


class Stack(StrictModel):
    """Versions of everything else that ran; None where the environment does not tell."""

    python: Short
    numpy: Short
    keras: Short | None
    cuda: Short | None
    cudnn: Short | None
    driver: Short | None
    image: Short | None
    image_digest: Short | None
    engine: Short
    os: Short
    cpu: Short
    cores: Count
    gpu: Short | None
    compute_capability: Short | None
    gpu_uuid_hash: Name | None
    bundle: Bundle | None = Field(default=None, description="absent: no bundle, nothing trimmed")


class GpuMoment(StrictModel):
    """What NVML said of the GPU; None where it does not tell."""

    driver: Short | None
    sm_mhz: Count | None
    memory_mhz: Count | None
    celsius: int | None
    performance_state: Count | None
    throttle_reasons: Count | None = Field(description="nvmlClocksThrottleReasons, a bit mask")
    ecc: bool | None
    ecc_errors: Count | None = Field(description="uncorrected since the driver was loaded")
    mig: bool | None


class GpuState(StrictModel):
    before: GpuMoment
    after: GpuMoment


class Fault(StrictModel):
    """How a case ended that gave no result."""

    kind: Literal["raises", "unsupported", "crashed", "timed-out"]
    type: Short
    message: Short
    where: Short | None
    output: Short | None = None


class Differing(StrictModel):
    relaunch: Count
    repeat: Count


class Record(StrictModel):
    """One observation with its provenance; times in seconds, started in UTC."""

    schema_: Literal[2] = Field(alias="schema")
    environment: Key
    framework: Framework
    device: Device
    source: Key
    case: Key
    mode: Literal["eager", "function", "session", "jit", "xla", "compiled", "host"]
    solution: Key
    case_hash: CaseHash
    observation: Observation
    repeats: Count
    relaunches: Count
    runs: Count = Field(description="repeats that were compared with the reference")
    differed: Count
    distinct: Count = Field(description="distinct results, the reference among them")
    first_differing: Differing | None
    max_ulp: Count | None
    max_absolute: Seconds | None
    digests: list[Digest] = Field(max_length=16)
    median_seconds: Seconds | None
    ran_on: list[Short] = Field(max_length=64)
    error: Fault | None
    stack: Stack
    machine: Name
    threads: Count = Field(description="threads the solution asked for; 0: the framework's own choice")
    determinism_environment: dict[Short, Short] = Field(max_length=64)
    kernels: list[Short] | None = Field(
        default=None, max_length=32, description="CUDA kernels that the profiler saw; absent: none told"
    )
    contention: Short | None = Field(
        default=None, description="what kept the device busy beside every process but the first; absent: nothing"
    )
    gpu_state: GpuState | None = None
    started: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    duration_seconds: Seconds
    checksum: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    @model_validator(mode="after")
    def _says_one_thing(self) -> Record:
        """What no run can have given is no record."""
        faults = [*contradictions(self.facts), *(text for text, wrong in self._more() if wrong)]
        if faults:
            raise ValueError("; ".join(faults))
        return self

    def _more(self) -> list[tuple[str, bool]]:
        """Rules on what reaches no table."""
        return [
            ("it ran somewhere, and yet no run came to its end", bool(self.ran_on) and not self.runs),
            ("a digest is there twice", len(set(self.digests)) < len(self.digests)),
            ("started at no possible time", not is_possible(self.started)),
            ("its median is no possible time", not is_time(self.median_seconds)),
        ]

    @property
    def facts(self) -> Facts:
        first = self.first_differing
        return Facts(
            self.device.kind, self.device.model, self.observation, self.repeats, self.relaunches, self.runs,
             self.differed, self.distinct, len(self.digests),
            (first.relaunch, first.repeat) if first else None, self.max_ulp, self.max_absolute,
            self.median_seconds is not None, self.error.kind if self.error else None,
        )  # fmt: skip

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        return (self.environment, self.device.model, self.source, self.case, self.solution)

    @property
    def origin(self) -> tuple[str, ...]:
        """The machine and stack that this record speaks of."""
        s = self.stack
        carried = s.bundle.manifest if s.bundle else ""
        kernels = " ".join(f"{name}={self.determinism_environment.get(name, '')}" for name in CALLER_VARIABLES)
        return (self.machine, s.engine, self.framework.version, s.python, s.numpy, s.driver or "", s.image_digest or "",
                carried, kernels)  # fmt: skip

    def line(self) -> str:
        """As the probe wrote it: its checksum is over these very bytes."""
        return self._line

    _line: str = PrivateAttr(default="")


_FIELD = b'"checksum":"'
_FIELD_LENGTH = len(_FIELD) + 64 + 2  # the closing quote and the comma; it is never the last field


def is_intact(line: bytes, checksum: object) -> bool:
    """Is this line what the probe wrote, byte for byte?  (Its checksum is over all but itself and the line's end.)

    checksum: what a reader took for it, who may have found another than what is left out here: a line may have two.
    """
    start = line.find(_FIELD)
    if start < 0:
        return False
    end = len(line) - line.endswith(b"\n")
    found = hashlib.sha256(line[:start] + line[start + _FIELD_LENGTH : end]).hexdigest()
    return found == checksum and line.startswith(found.encode("ascii"), start + len(_FIELD))


def checksums(path: Path) -> frozenset[str]:
    """What the lines of a file say theirs is."""
    return frozenset(map(checksum_of, read_lines(path, FILE_OF_RECORDS)))


def checksum_of(line: bytes) -> str:
    start = line.find(_FIELD) + len(_FIELD)
    return line[start : start + 64].decode("ascii", "replace")


FILE_OF_RECORDS = "Name a file of records, one JSON object a line."
_EDITED = "its checksum does not fit: a record is what ran, it is never edited"
_OTHERWISE = "not written as the probe writes it: sorted keys, no blanks, one line of ASCII"


def parse(line: bytes) -> Record:
    """One line as a record; ValueError says why not.

    What is hashed, what is understood and what is kept are the same bytes: but for the line's end nothing is taken off.
    """
    if len(line) > LONGEST:
        raise ValueError(f"longer than {LONGEST:,} bytes, so no record")
    try:
        content = strict_json(line)
    except UnicodeDecodeError:
        raise ValueError("no text, so no record") from None
    except json.JSONDecodeError:
        raise ValueError("no JSON object, so no record") from None
    version = content.get("schema") if isinstance(content, dict) else None
    if type(version) is not int or not migrate.OLDEST <= version <= SCHEMA:
        raise ValueError(_version_advice(version))
    faults = [] if is_intact(line, content.get("checksum")) else [_EDITED]
    try:
        record = Record.model_validate(migrate.current(content))
    except ValidationError as error:
        faults += [format_validation_error(fault, "record") for fault in error.errors()]
    except ValueError as error:
        faults.append(str(error))
    if not faults and dump(content).encode("ascii") != line.removesuffix(b"\n"):
        faults.append(_OTHERWISE)
    if faults:
        raise ValueError("; ".join(faults))
    record._line = line.decode("ascii").removesuffix("\n") + "\n"
    return record


def _version_advice(version: object) -> str:
    if isinstance(version, int) and version > SCHEMA:
        return f"a record of schema {version}, this tfdet reads those up to {SCHEMA}: use a newer tfdet"
    known = f"{migrate.OLDEST} to {SCHEMA}"
    return f"a record of schema {version}, this tfdet reads {known}: run the suite again with this tfdet"


def read_records(path: Path) -> Iterator[Record]:
    """Every record of a file; DataError names every faulty line, after the last was read."""
    faults: list[str] = []
    for number, line in enumerate(read_lines(path, FILE_OF_RECORDS), 1):
        try:
            yield parse(line)
        except ValueError as error:
            faults.append(f"{path}:{number}: {error}")
    if faults:
        raise DataError("\n".join(faults), "Nothing was taken from this file.")
