"""Files of several records with envelopes are refused and change nothing, or are taken, and trusted if it is true.

TFDET_FUZZ=3000: that many files, from a random seed; without it the number of the week is the seed.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest
import weekly
from envelope_oracle import believable, intact_lines
from fuzzed_store import FuzzedStore, opened
from record_oracle import falsehoods
from sendings import Sending, World
from signers import Signer

from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.store.evidence import EvidenceStore
from tfdet.store.records import read_records
from tfdet.store.signatures import SUFFIX, AttestationStore, folder_of, verify_for_records

FUZZ = os.environ.get("TFDET_FUZZ")
SENDINGS = int(FUZZ) if FUZZ else weekly.scale_count(200)
SEED = random.randrange(1 << 32) if FUZZ else weekly.DAY // 7
TRUSTED = {name: Signer(name) for name in ("cpu", "vgpu", "nvidia")}  # {kind of device: who is trusted for it}
OTHERS = {name: Signer(name) for name in ("revoked", "thief")}
Believed = set[tuple[str, str]]  # (signer, checksum)


class Fuzzed(NamedTuple):
    """The store with signed records of every kind, and what is believed in it; world: what is sent to it."""

    store: FuzzedStore
    world: World
    believed: Believed


def trust_and_sign(project: Project) -> None:
    """Write the keys, and envelopes of half of each file of the store."""
    for name, signer in TRUSTED.items():
        signer.trust_in(project, name, since="2019-01-01")
    OTHERS["revoked"].write_revoked_key(project, "cpu")
    for path in EvidenceStore(project.evidence).files():
        signer = TRUSTED[path.parent.name.split("-")[0]]
        bundle = folder_of(project.evidence) / path.parent.name / f"{path.stem}{SUFFIX}"
        bundle.parent.mkdir(parents=True, exist_ok=True)
        bundle.write_text("".join(signer.sign(project, list(read_records(path))[::2])), "ascii")


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    with opened(tmp_path_factory.mktemp("fuzzed") / "project", trust_and_sign) as store:
        envelopes = [line for path, content in store.stored.items() if path.name.endswith(SUFFIX)
                     for line in content.splitlines(keepends=True)]  # fmt: skip
        world = World(store.project, store.genuine, {**TRUSTED, **OTHERS}, envelopes)
        stored = chain.from_iterable(content.splitlines(keepends=True) for content in store.stored.values())
        before = believable(envelopes, intact_lines(stored), TRUSTED)
        assert before == believed_of(store)
        yield Fuzzed(store, world, before)


def believed_of(store: FuzzedStore) -> Believed:
    """Return (signer, checksum) of the stored records that count as signed."""
    attestations = AttestationStore.open(store.project, load_matrix(store.project.matrix))
    assert attestations.find_faults() == []
    believed = set()
    for path in EvidenceStore.open(store.project).files():
        index = attestations.index_of(path.parent.name, path.stem)
        for record in map(json.loads, path.read_bytes().splitlines()):
            if signer := index.trusted_signer(record["checksum"], record["started"]):
                believed.add((signer, record["checksum"]))
    return believed


def write(store: FuzzedStore, sending: Sending, name: str = "sent") -> Path:
    path = store.project.root / f"{name}.jsonl"
    path.write_bytes(b"".join(sending.lines))
    path.with_name(path.name + SUFFIX).write_bytes(b"".join(sending.envelopes))
    return path


def is_taken(fuzzed: Fuzzed, sending: Sending) -> bool:
    """Add the files; return whether they were taken.  AssertionError if either was not done rightly."""
    path = write(fuzzed.store, sending)
    return fuzzed.store.takes(path, str(path), lambda: _check_taken(fuzzed, path))


def _check_taken(fuzzed: Fuzzed, path: Path) -> None:
    lines = intact_lines(path.read_bytes().splitlines(keepends=True))
    envelopes = path.with_name(path.name + SUFFIX).read_bytes().splitlines(keepends=True)
    may_believe = fuzzed.believed | believable(envelopes, lines, TRUSTED)
    believed = believed_of(fuzzed.store)
    assert believed <= may_believe, believed - may_believe
    records = {record["checksum"]: record for record in map(json.loads, lines.values())}
    assert not [text for record in records.values() for text in falsehoods(fuzzed.store.facts, record)]
    signed = {key for key, row in fuzzed.store.cells().items() if row["signed"]}
    stored = _stored_cells(fuzzed.store)
    assert signed <= {stored[checksum] for _, checksum in may_believe if checksum in stored}, signed


def _stored_cells(store: FuzzedStore) -> dict[str, tuple[str, str, str, str]]:
    """Return {checksum: the cell of that record}."""
    records = (json.loads(line) for path in EvidenceStore.open(store.project).files()
               for line in path.read_bytes().splitlines())  # fmt: skip
    return {
        record["checksum"]: (record["environment"], record["device"]["model"], record["source"], record["solution"])
        for record in records
    }


@weekly.on_day(1, days=2)
def test_each_file_is_refused_or_taken_and_trusted_as_it_is(fuzzed: Fuzzed) -> None:
    taken, wrong = [], []
    for number in range(SENDINGS):
        sending = fuzzed.world.sent(random.Random(f"{SEED} {number}"))
        try:
            if is_taken(fuzzed, sending):
                taken.append(sending)
        except AssertionError as error:
            wrong.append(f"file {number} of {SEED}: {str(error)[:3000]}")
    assert not wrong, f"{len(wrong)} of {SENDINGS}\n" + "\n".join(wrong[:20])
    assert SENDINGS / 20 < len(taken) < SENDINGS, len(taken)
    fuzzed.store.check_together(write(fuzzed.store, sending, f"sent-{n}") for n, sending in enumerate(taken))


@pytest.mark.no_cover  # thousands of envelopes, and nothing that other tests do not reach
@weekly.on_day(1, days=2)
def test_no_false_statement_is_verified(fuzzed: Fuzzed) -> None:
    """Ten times as many files as are added: only the check of their envelopes."""
    signatures, verified = AttestationStore.open(fuzzed.store.project, load_matrix(fuzzed.store.project.matrix)), 0
    for number in range(10 * SENDINGS):
        sending = fuzzed.world.sent(random.Random(f"{SEED} {number} verified"))
        lines = intact_lines(sending.lines)
        for envelope in sending.envelopes:
            with contextlib.suppress(ValueError):  # UnicodeDecodeError, too
                attestation = verify_for_records(signatures, lines.get, envelope.decode("utf-8"))
                verified += 1
                named = {(attestation.name, checksum) for checksum in attestation.batch.checksums}
                assert named <= believable([envelope], lines, TRUSTED), (number, envelope[:3000])
    assert verified > SENDINGS, verified
