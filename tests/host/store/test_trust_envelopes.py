"""Envelopes in all forms that DSSE allows, and statements that disagree with the records."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from signers import H100, Signer, run_tfdet, write_bundle
from test_trust_attacks import batch

from tfdet.base.paths import Project
from tfdet.matrix.keys import Keyring, PublicKey
from tfdet.matrix.load import load_file, load_matrix
from tfdet.store import in_toto
from tfdet.store.dsse import MAX_SIGNATURES, PAYLOAD_TYPE, pae, parse_unverified
from tfdet.store.evidence import EvidenceStore
from tfdet.store.records import Record, parse
from tfdet.store.signatures import Attestation, AttestationStore, bundle_path, verify_for_records
from tfdet.store.signing import add_to_bundle, attest, key_signer

DOCKER = {**H100["stack"], "image_digest": f"tfdet@sha256:{'c' * 64}", "engine": "docker"}  # type: ignore[dict-item]


class World(NamedTuple):
    """Signers: lab and yard are trusted for GPUs, office for CPUs, thief for nothing; trust in late ended before 2026.

    records: of a GPU, in 2026.
    """

    project: Project
    signatures: AttestationStore
    lab: Signer
    yard: Signer
    late: Signer
    office: Signer
    thief: Signer
    records: list[Record]

    def verified(self, line: str, records: list[Record] | None = None) -> Attestation:
        """Verify the envelope, as when records are added; raise ValueError if it is not trusted."""
        return verify_for_records(self.signatures, records or self.records, line)

    def envelope(self, *signers: Signer) -> dict[str, Any]:
        """An envelope that all of these signers signed."""
        envelopes = [json.loads(signer.sign(self.project, self.records)[0]) for signer in signers]
        return {**envelopes[0], "signatures": [envelope["signatures"][0] for envelope in envelopes]}


@pytest.fixture(scope="module")
def world(checkout: Project, tmp_path_factory: pytest.TempPathFactory) -> World:
    lab, yard, late, office, thief = (Signer(name) for name in ("lab", "yard", "late", "office", "thief"))
    folder = Project(tmp_path_factory.mktemp("keys"))
    folder.matrix.mkdir()
    files = [office.trust_in(folder, "cpu"), lab.trust_in(folder), yard.trust_in(folder)]
    files.append(late.trust_in(folder, extra_lines="until = 2025-12-31", since="2025-01-01"))
    keys = Keyring({path.stem: load_file(path, PublicKey) for path in files})
    signatures = AttestationStore(keys, load_matrix(checkout.matrix).environments, project=checkout)
    return World(checkout, signatures, lab, yard, late, office, thief, batch(**H100))


def signed(key: Signer, content: dict[str, Any] | bytes) -> str:
    """Return an envelope of this payload, signed by the key."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    signature = {"keyid": key.id, "sig": base64.b64encode(key.key.sign(pae(PAYLOAD_TYPE, body))).decode()}
    payload = base64.b64encode(body).decode()
    return json.dumps({"payload": payload, "payloadType": PAYLOAD_TYPE, "signatures": [signature]})


def statement(world: World, records: list[Record] | None = None) -> dict[str, Any]:
    """Return the in-toto statement that the lab signs for the records."""
    (line,) = world.lab.sign(world.project, records or world.records)
    content: dict[str, Any] = json.loads(parse_unverified(line)[1])
    return content


def without_hint(envelope: dict[str, Any]) -> None:
    """Remove the key id, which DSSE calls a hint, of the first signature."""
    del envelope["signatures"][0]["keyid"]


@pytest.mark.parametrize(
    "change",
    [
        without_hint,
        lambda envelope: envelope["signatures"][0].update(keyid=""),
        lambda envelope: envelope["signatures"][0].update(keyid=None),
        lambda envelope: envelope["signatures"][0].update(keyid="SHA256:of/another+habit"),
        lambda envelope: envelope["signatures"][0].update(certificate="..."),
        lambda envelope: envelope.update(more={"of": "a later version"}),
        lambda envelope: envelope["signatures"].insert(0, {"keyid": "x", "sig": "AAAA"}),
        lambda envelope: envelope["signatures"].append({"sig": ""}),
    ],
)
def test_every_form_that_dsse_allows_is_accepted(world: World, change: Callable[[dict[str, Any]], None]) -> None:
    """The envelope is stored in tfdet's own form."""
    envelope = world.envelope(world.lab)
    change(envelope)
    verified = world.verified(json.dumps(envelope))
    assert (verified.name, f"{verified.line}\n") == ("lab", world.lab.sign(world.project, world.records)[0])


def test_the_first_trusted_signature_counts(world: World) -> None:
    for signers, name in [
        ((world.lab, world.yard), "lab"),
        ((world.yard, world.lab), "yard"),
        ((world.thief, world.office, world.yard, world.lab), "yard"),
        ((world.late, world.office, world.lab), "lab"),
    ]:
        verified = world.verified(json.dumps(world.envelope(*signers)))
        assert (verified.name, len(json.loads(verified.line)["signatures"])) == (name, 1)
    with pytest.raises(ValueError, match="the key office is not trusted for nvidia-h100"):
        world.verified(json.dumps(world.envelope(world.thief, world.office)))
    with pytest.raises(ValueError, match="the key late is not trusted for records of 2026"):
        world.verified(json.dumps(world.envelope(world.thief, world.office, world.late)))


def test_in_a_bundle_file_the_first_trusted_signature_counts(world: World) -> None:
    envelope = json.dumps(world.envelope(world.late, world.yard))
    find_line = {record.checksum: record.line().encode() for record in world.records}.get
    index = replace(world.signatures, extra_envelopes=(envelope,), find_record=find_line).index_of(
        "nvidia-h100", world.records[0].environment
    )
    assert {index.trusted_signer(record.checksum, record.started) for record in world.records} == {"yard"}


def test_a_key_id_decides_nothing(world: World) -> None:
    envelope = world.envelope(world.yard)
    envelope["signatures"][0]["keyid"] = world.lab.id
    assert world.verified(json.dumps(envelope)).name == "yard"
    forged = world.envelope(world.thief)
    forged["signatures"][0].pop("keyid")
    with pytest.raises(ValueError, match="matrix/keys does not hold: it names none"):
        world.verified(json.dumps(forged))


def test_the_number_of_signatures_is_limited(world: World) -> None:
    envelope = world.envelope(world.lab)
    envelope["signatures"] = MAX_SIGNATURES * envelope["signatures"]
    assert world.verified(json.dumps(envelope)).name == "lab"
    envelope["signatures"].append(envelope["signatures"][0])
    with pytest.raises(ValueError, match="no envelope: signatures"):
        world.verified(json.dumps(envelope))


def test_a_duplicate_field_is_refused(world: World) -> None:
    """One parser uses the first value, another the last."""
    (line,) = world.lab.sign(world.project, world.records)
    for duplicated in (f'{{"payload": "AAAA", {line[1:]}', line.strip()[:-1] + ', "payload": "AAAA"}'):
        with pytest.raises(ValueError, match=r"no envelope: '[a-zA-Z]+' occurs twice"):
            world.verified(duplicated)
    body = json.dumps(statement(world)).encode()
    for bad in (
        body[:-1] + b', "_type": "https://in-toto.io/Statement/v1"}',
        body.replace(b'"name"', b'"name":1,"name"'),
    ):
        with pytest.raises(ValueError, match=r"no statement of records: '[a-zA-Z_]+' occurs twice"):
            world.verified(signed(world.lab, bad))


@pytest.mark.parametrize(
    "line", ["[" * 100_000, '{"payload": NaN}', '{"payload":1' + "0" * 6000 + "}", '"\ud800"', "{"]
)
def test_invalid_json_is_refused_with_a_message(world: World, line: str) -> None:
    with pytest.raises(ValueError, match="no envelope"):
        world.verified(line)


def test_an_envelope_without_key_id_keeps_its_signatures(world: World, copy: Project) -> None:
    """Signing again replaces no envelope that another key signed, too."""
    envelope = world.envelope(world.lab)
    without_hint(envelope)
    assert parse_unverified(json.dumps(envelope))[0]
    path = write_bundle(
        copy, "records.jsonl", world.records, [json.dumps(world.envelope(world.lab, world.yard)) + "\n"]
    )
    add_to_bundle(path, attest(copy, world.records, key_signer(world.lab.key)))
    assert len(bundle_path(path).read_text().splitlines()) == 2, "the other's signature is gone"


def test_many_records_are_signed_in_several_envelopes(
    world: World, copy: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of records in one envelope is limited, and so is the memory to verify it."""
    monkeypatch.setattr(in_toto, "MAX_BATCH_RECORDS", 2)
    first, second = batch(**H100), batch(**{**H100, "stack": DOCKER})
    records = [*first, *second]
    expected = -(-len(records) // 2)
    assert expected > 1
    path = write_bundle(copy, "records.jsonl", records)
    for _ in range(2):  # signed again: those of before give way
        add_to_bundle(path, attest(copy, iter(records), key_signer(world.lab.key)))
        lines = bundle_path(path).read_text().splitlines()
        assert len(lines) == expected
        named = [checksum for line in lines for checksum in parse_envelope_batch(line)]
        assert named == [record.checksum for record in records]


def parse_envelope_batch(line: str) -> list[str]:
    """Return the checksums of the records that the envelope lists."""
    return list(in_toto.parse_statement(parse_unverified(line)[1]).batch.checksums)


# What an environment was made of.


def subjects(content: dict[str, Any], **digests: str | None) -> dict[str, Any]:
    """Return the statement with other digests, or without them; the records stay unchanged."""
    remaining = [subject for subject in content["subject"] if subject["name"] not in digests]
    added = [{"name": name, "digest": {"sha256": digest}} for name, digest in digests.items() if digest]
    return {**content, "subject": remaining + added}


def test_a_statement_names_the_lock_file_or_image(world: World) -> None:
    with pytest.raises(ValueError, match="lab does not say what their environment was made of"):
        world.verified(signed(world.lab, subjects(statement(world), lock=None)))


@pytest.mark.parametrize(
    "digests",
    [{"image": "d" * 64}, {"image": None}, {"image": None, "lock": "d" * 64}, {"lock": "d" * 64}, {"bundle": "c" * 64}],
)
def test_the_image_of_a_statement_is_that_of_the_records(world: World, digests: dict[str, str | None]) -> None:
    records = batch(**{**H100, "stack": DOCKER})
    assert world.verified(signed(world.lab, statement(world, records)), records).name == "lab"
    with pytest.raises(ValueError, match=r"signed them as made of .*, and they tell of the image cccccccccccc"):
        world.verified(signed(world.lab, subjects(statement(world, records), **digests)), records)


@pytest.mark.parametrize("name", ["image", "bundle"])
def test_a_statement_may_not_name_an_image_that_the_records_lack(world: World, name: str) -> None:
    with pytest.raises(ValueError, match=f"made of the {name} dddddddddddd, and they tell of no image and no bundle"):
        world.verified(signed(world.lab, subjects(statement(world), **{name: "d" * 64, "lock": None})))


def test_a_statement_of_an_environment_without_lock_file_is_verified(world: World) -> None:
    records = batch(**{**H100, "environment": "ngc19.06-py3"})
    assert world.verified(signed(world.lab, statement(world, records)), records).name == "lab"


@pytest.mark.parametrize("name", ["suite", "lock", "image-of-another"])
def test_a_statement_has_each_subject_once_and_no_other(world: World, name: str) -> None:
    content = statement(world)
    content["subject"].append({"name": name, "digest": {"sha256": "a" * 64}})
    with pytest.raises(ValueError, match=f"what is its subject '{name}'"):
        world.verified(signed(world.lab, content))


def test_the_result_of_a_statement_is_that_of_the_records(world: World) -> None:
    content = statement(world)
    content["predicate"]["result"] = "FAILED"
    with pytest.raises(ValueError, match="signed them as FAILED"):
        world.verified(signed(world.lab, content))


def test_another_lock_file_is_accepted_and_reported(copy: Project, world: World) -> None:
    """The lock file may be an earlier one."""
    world.lab.trust_in(copy)
    content = statement(world)
    signed_path = write_bundle(copy, "own.jsonl", world.records, [signed(world.lab, content)])
    assert "another lock" not in run_tfdet(copy, "evidence", "add", "--yes", signed_path).stderr
    assert "another lock" not in run_tfdet(copy, "show", "tf2.0", "bias-add-backprop").stdout
    records = batch(machine="b" * 12, **H100)
    line = signed(world.lab, subjects(statement(world, records), lock="f" * 64))
    done = run_tfdet(copy, "evidence", "add", "--yes", write_bundle(copy, "other.jsonl", records, [line]))
    message = "lab signed tf2.0 on nvidia-h100 as built from a different lock file"
    assert (done.returncode, message in " ".join(done.stderr.split())) == (0, True), done.stderr
    output = " ".join(run_tfdet(copy, "show", "tf2.0", "bias-add-backprop").stdout.split())
    assert "signed by lab, built from a different lock file" in output
    assert run_tfdet(copy, "status", "--write").returncode == 0


def test_all_envelopes_of_this_repository_are_valid(checkout: Project) -> None:
    signatures = AttestationStore.open(checkout, load_matrix(checkout.matrix))
    assert signatures.find_faults() == []
    paths = [path for path in EvidenceStore.open(checkout).files() if EvidenceStore.open(checkout).envelopes(path)]
    assert len(paths) >= 3
    for path in paths:
        index = signatures.index_of(path.parent.name, path.stem)
        assert [attestation.untrusted_reason for attestation in index.attestations] == [""] * len(index.attestations)


@pytest.mark.parametrize("keyid", ["a\nb", "\x1b[2Jx", "a\r\tb", "\u202eab"])
def test_an_untrusted_key_id_is_printable_in_messages(world: World, keyid: str) -> None:
    envelope = world.envelope(world.thief)
    envelope["signatures"][0]["keyid"] = keyid
    with pytest.raises(ValueError, match=r"\w") as caught:
        world.verified(json.dumps(envelope))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("name", "value"),
    [("payloadType", "\ud800"), ("payloadType", int("7" * 4000)), ("more", "\udfff")],
    ids=["a type of half a character", "a long number", "half a character beside"],
)
def test_an_invalid_envelope_is_refused_with_a_plain_message(world: World, name: str, value: object) -> None:
    envelope = {**world.envelope(world.lab), name: value}
    line = json.dumps(envelope).replace("7" * 4000, "7" * 6000)
    with pytest.raises(ValueError, match="no envelope: ") as caught:
        world.verified(line)
    assert not re.search("codec|set_int|Exceeds", str(caught.value)), caught.value


def test_a_number_of_many_digits_is_refused_with_a_plain_message(world: World) -> None:
    line = world.records[0].line().replace('"runs":10', f'"runs":{"7" * 6000}').encode()
    with pytest.raises(ValueError, match="a number of 6,000 digits"):
        parse(line)
