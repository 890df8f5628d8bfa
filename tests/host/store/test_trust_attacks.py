"""An attacker's envelopes never make a record trusted."""

from __future__ import annotations

import base64
import copy as copies
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import weekly
from records import make_record
from signers import H100, Signer

from tfdet.base.paths import Project
from tfdet.matrix.keys import Keyring, PublicKey
from tfdet.matrix.load import load_file, load_matrix
from tfdet.store.dsse import PAYLOAD_TYPE, pae, parse_unverified
from tfdet.store.records import Record, parse
from tfdet.store.signatures import AttestationStore, verify_for_records
from tfdet_common import journal

ATTACKS = weekly.scale_count(10_000)


class Attack(NamedTuple):
    """The kind of attack, the records that it is about, and the envelope that is added with them."""

    what: str
    records: list[Record]
    line: str


class World(NamedTuple):
    """Signers: lab is trusted for GPUs, office for CPUs, revoked was trusted for GPUs, and thief is unknown.

    genuine: records of a GPU, of which `line` is the lab's envelope; processors: records of a CPU.
    """

    project: Project
    signatures: AttestationStore
    lab: Signer
    office: Signer
    revoked: Signer
    thief: Signer
    genuine: list[Record]
    line: str
    processors: list[Record]


def record(**changes: Any) -> Record:
    """Return a record with these fields."""
    return parse((journal.dump(make_record(changes.pop("observation", "equal"), **changes)) + "\n").encode())


def batch(observation: str = "equal", machine: str = "a" * 12, **changes: Any) -> list[Record]:
    """Return the records of three cases."""
    return [record(observation=observation, case=f"case-{n}-eager", machine=machine, **changes) for n in range(3)]


@pytest.fixture(scope="module")
def world(checkout: Project, tmp_path_factory: pytest.TempPathFactory) -> World:
    lab, office, revoked, thief = (Signer(name) for name in ("lab", "office", "gone", "thief"))
    folder = Project(tmp_path_factory.mktemp("keys"))
    folder.matrix.mkdir()
    lab.trust_in(folder)
    office.trust_in(folder, "cpu")
    revoked.write_revoked_key(folder)
    keys = Keyring(
        {s.name: load_file(folder.matrix / "keys" / f"{s.name}.toml", PublicKey) for s in (lab, office, revoked)}
    )
    signatures = AttestationStore(keys, load_matrix(checkout.matrix).environments)
    genuine = batch(**H100)
    (line,) = lab.sign(checkout, genuine)
    return World(checkout, signatures, lab, office, revoked, thief, genuine, line, batch())


def one_character_changed(rng: random.Random, world: World) -> Attack:
    """Change one character of the envelope."""
    position = rng.randrange(len(world.line) - 1)
    other = rng.choice([c for c in 'Ab0+/_-="{}:, ' if c != world.line[position]])
    return Attack("bent", world.genuine, world.line[:position] + other + world.line[position + 1 :])


def signed_by_an_unknown_key(rng: random.Random, world: World) -> Attack:
    """Forged or genuine records, signed by an unknown key, whose hint may be the lab's."""
    forged = rng.choice([batch("differs", f"{rng.getrandbits(48):012x}", **H100), world.genuine])
    content = json.loads(world.thief.sign(world.project, forged)[0])
    if rng.random() < 0.5:
        content["signatures"][0]["keyid"] = world.lab.id
    if forged != world.genuine and rng.random() < 0.2:
        content["signatures"].append(json.loads(world.line)["signatures"][0])
    return Attack("signed by nobody", forged, json.dumps(content))


def replayed(rng: random.Random, world: World) -> Attack:
    """The genuine envelope beside other records."""
    return Attack("replayed", batch("differs", f"{rng.getrandbits(48):012x}", **H100), world.line)


def truncated(rng: random.Random, world: World) -> Attack:
    """Fewer records than were signed, or a shorter envelope."""
    if rng.random() < 0.5:
        return Attack("truncated", world.genuine, world.line[: rng.randrange(len(world.line) - 2)])
    return Attack("truncated", rng.sample(world.genuine, rng.randrange(3)), world.line)


def restated(rng: random.Random, world: World) -> Attack:
    """The lab's signature over a changed statement: reordered, shortened, or of another environment."""
    content = json.loads(world.line)
    statement = json.loads(base64.b64decode(content["payload"]))
    notes = next(subject["annotations"] for subject in statement["subject"] if subject["name"] == "records")
    how = rng.randrange(5)
    if how == 0:
        notes["checksums"] = [notes["checksums"][n] for n in rng.choice([(1, 0, 2), (2, 1, 0), (1, 2, 0)])]
    elif how == 1:
        notes["checksums"].pop(rng.randrange(3))
    elif how == 2:
        notes["device"] = rng.choice(["cpu", "nvidia-h200", "vgpu-sm70"])
    elif how == 3:
        notes["environment"] = rng.choice(["tf2.1", "tf2.21"])
    else:
        statement["subject"] = statement["subject"][1:]
    content["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
    return Attack("restated", world.genuine, json.dumps(content))


def relabelled(rng: random.Random, world: World) -> Attack:
    """A CPU's record relabelled as a GPU's, signed by a key trusted for CPUs, or with the original signature."""
    gpu = [record(case=r.case, machine=r.machine, **H100) for r in world.processors]
    line = rng.choice([world.office.sign(world.project, gpu), world.office.sign(world.project, world.processors)])[0]
    return Attack("relabelled", gpu, line)


def misdeclared(rng: random.Random, world: World) -> Attack:
    """A key that is trusted for CPUs declares that a GPU's records are of a CPU."""
    content = json.loads(world.office.sign(world.project, world.genuine)[0])
    statement = json.loads(base64.b64decode(content["payload"]))
    next(subject["annotations"] for subject in statement["subject"] if subject["name"] == "records")["device"] = "cpu"
    sealed = json.dumps(statement, indent=rng.randrange(4)).encode()
    content["payload"] = base64.b64encode(sealed).decode()
    content["signatures"][0]["sig"] = base64.b64encode(world.office.key.sign(pae(PAYLOAD_TYPE, sealed))).decode()
    return Attack("misdeclared", world.genuine, json.dumps(content))


def by_a_revoked_key(rng: random.Random, world: World) -> Attack:
    """The dates are the attacker's own."""
    forged = batch(rng.choice(["equal", "differs"]), f"{rng.getrandbits(48):012x}", **H100)
    return Attack("by a revoked key", forged, world.revoked.sign(world.project, forged)[0])


def of_another_type(rng: random.Random, world: World) -> Attack:
    """The lab signed it as another type of payload, which the signature covers."""
    content = json.loads(world.line)
    content["payloadType"] = rng.choice(["application/json", "text/plain", "application/vnd.in-toto+json "])
    if rng.random() < 0.5:
        sealed = base64.b64decode(content["payload"])
        content["signatures"][0]["sig"] = base64.b64encode(world.lab.key.sign(sealed)).decode()
    return Attack("of another type", world.genuine, json.dumps(content))


MAKERS: list[Callable[[random.Random, World], Attack]] = [
    *(one_character_changed, signed_by_an_unknown_key, replayed, truncated, restated, relabelled),
    *(misdeclared, by_a_revoked_key, of_another_type),
]


def attacks(world: World) -> Iterator[Attack]:
    rng = random.Random(16)
    for number in range(ATTACKS):
        yield MAKERS[number % len(MAKERS)](rng, world)


def is_genuine(world: World, attack: Attack) -> bool:
    """Whether no signed byte changed. (A changed character may be in the key id, a hint that counts for nothing.)"""
    try:
        same = parse_unverified(attack.line)[1] == parse_unverified(world.line)[1]
    except ValueError:
        return False
    return same and attack.records == world.genuine


@pytest.mark.no_cover  # thousands of envelopes, and nothing that other tests do not reach
def test_no_attack_is_trusted(world: World) -> None:
    counts: Counter[str] = Counter()
    for attack in attacks(world):
        try:
            verify_for_records(world.signatures, attack.records, attack.line)
        except ValueError:
            counts[attack.what] += 1
        else:
            assert attack.what == "bent" and is_genuine(world, attack), attack
    assert len(counts) == len(MAKERS) and sum(counts.values()) > ATTACKS * 0.98


@pytest.mark.no_cover  # as many
def test_no_attack_is_trusted_when_it_is_in_the_store(world: World) -> None:
    """The envelope is compared with the stored records at each read."""
    signed = {genuine.checksum for genuine in world.genuine}
    for attack in attacks(world):
        find_line = {genuine.checksum: genuine.line().encode() for genuine in attack.records}.get
        standing = AttestationStore(
            world.signatures.keys, world.signatures.environments, extra_envelopes=[attack.line], find_record=find_line
        )
        for record in attack.records:
            signer = standing.index_of(record.device.model, record.environment).trusted_signer(
                record.checksum, record.started
            )
            assert not signer or (signer == "lab" and record.checksum in signed), attack


def test_the_genuine_envelope_is_trusted(world: World) -> None:
    """This is the control of the attacks."""
    assert verify_for_records(world.signatures, world.genuine, world.line).name == "lab"
    url_safe = world.line.replace("+", "-").replace("/", "_").replace("application_vnd.in-toto-json", PAYLOAD_TYPE)
    assert verify_for_records(world.signatures, world.genuine, url_safe).name == "lab"
    assert (
        verify_for_records(world.signatures, [*batch("differs", **H100), *reversed(world.genuine)], world.line).name
        == "lab"
    )


def test_a_signature_covers_all_bytes_of_a_record(world: World) -> None:
    """The checksum covers all other bytes, so no other line has it."""
    rng = random.Random(7)
    line = world.genuine[0].line().encode()
    for _ in range(2_000):
        content = copies.copy(bytearray(line))
        content[rng.randrange(len(line) - 1)] = rng.choice(b'0 ,"}x')
        if bytes(content) == line:
            continue
        try:
            changed = parse(bytes(content))
        except ValueError:
            continue
        assert changed.checksum not in {record.checksum for record in world.genuine} or changed == world.genuine[0]
