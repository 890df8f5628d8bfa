"""Records at a glance: what inference and the rules need of each, for there may be a million."""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from tfdet.base.errors import DataError
from tfdet.base.untrusted import read_lines
from tfdet.matrix.devices import Devices
from tfdet.store.migrate import first_kind
from tfdet.store.records import FILE_OF_RECORDS, Record, is_intact, parse
from tfdet.store.rules import Facts, contradictions, is_possible, is_time
from tfdet.verdicts.infer import Seen


class _Part(msgspec.Struct, frozen=True, gc=False):
    """Of a record's parts what is needed; the rest is not even decoded."""


class _Stack(_Part, frozen=True, gc=False):
    gpu: str | None


class _Error(_Part, frozen=True, gc=False):
    kind: str


class _First(_Part, frozen=True, gc=False):
    relaunch: int
    repeat: int


class Glance(Seen, frozen=True, gc=False):
    """And what the rules need of a record whose checksum vouches for the rest; they bound its numbers."""

    schema: Literal[1, 2]
    repeats: int
    relaunches: int
    distinct: int
    digests: list[str]
    first_differing: _First | None
    max_ulp: int | None
    max_absolute: float | None
    error: _Error | None
    stack: _Stack
    started: str
    checksum: str


_decode = msgspec.json.Decoder(Glance).decode


def _facts(g: Glance, kind: str) -> Facts:
    first, error = g.first_differing, g.error
    return Facts(kind, g.model, g.observation, g.repeats, g.relaunches, g.runs, g.differed, g.distinct,
                 len(g.digests), (first.relaunch, first.repeat) if first else None, g.max_ulp, g.max_absolute,
                 g.seconds is not None, error.kind if error else None)  # fmt: skip


def _kind(g: Glance) -> str:
    if isinstance(g.device, str) != (g.schema == 1):
        raise ValueError(f"a record of schema {g.schema} with the device of another")
    return first_kind(g.device) if isinstance(g.device, str) else g.device.kind


def glance(path: Path, devices: Devices, skip: Container[str] = ()) -> Iterator[Glance]:
    """The records of a file of the store as inference sees them, but for those whose checksum is in `skip`.

    DataError names every faulty line.
    """
    faults: list[str] = []
    fits = lru_cache(maxsize=4096)(devices.faults)
    for number, line in enumerate(read_lines(path, FILE_OF_RECORDS), 1):
        try:
            g = _decode(line)
            if not is_intact(line, g.checksum):
                parse(line)  # says what is wrong with it
            kind = _kind(g)
            if contradictions(_facts(g, kind)) or not (is_possible(g.started) and is_time(g.seconds)):
                parse(line)
            if wrong := fits(kind, g.model, g.stack.gpu):
                raise ValueError("; ".join(wrong))
        except (ValueError, RecursionError) as error:  # msgspec's are ValueErrors
            faults.append(f"{path}:{number}: {_why(line, error)}")
            continue
        if g.checksum not in skip:
            yield g
    if faults:
        raise DataError("\n".join(faults), "Nothing was taken from this file.")


def _why(line: bytes, error: Exception) -> str:
    """In our words, where the strict reader finds it, too."""
    try:
        parse(line)
    except ValueError as said:
        return str(said)
    return str(error)


def seen(r: Record) -> Seen:
    return Seen(r.environment, r.device.model, r.source, r.case, r.machine, r.solution, r.case_hash, r.observation,
                r.runs, r.differed, r.median_seconds)  # fmt: skip
