"""Stored envelopes are compared with their records at every read, and not only when records are added."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from signers import H100, Signer
from test_trust_attacks import batch

from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.store.dsse import PAYLOAD_TYPE, pae, parse_unverified
from tfdet.store.evidence import EvidenceStore
from tfdet.store.records import Record
from tfdet.store.signatures import SUFFIX, AttestationStore, folder_of, verify_for_records

DOCKER = {**H100["stack"], "image_digest": f"tfdet@sha256:{'c' * 64}", "engine": "docker"}  # type: ignore[dict-item]
Change = Callable[[dict[str, Any]], object]


def subject(content: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the subject of that name in an in-toto statement."""
    entry: dict[str, Any] = next(candidate for candidate in content["subject"] if candidate["name"] == name)
    return entry


def other_digest(name: str) -> Change:
    """Return a change: another digest of a subject."""
    return lambda content: subject(content, name)["digest"].update(sha256="d" * 64)


def without_subject(name: str) -> Change:
    """Return a change: the subject is missing."""
    return lambda content: content["subject"].remove(subject(content, name))


def other_result(text: str) -> Change:
    """Return a change: another result."""
    return lambda content: content["predicate"].update(result=text)


def other_predicate(name: str, value: object) -> Change:
    """Return a change: another value of a field of the predicate."""
    return lambda content: content["predicate"].update({name: value})


def other_environment(content: dict[str, Any]) -> None:
    """Declare another environment."""
    subject(content, "records")["annotations"]["environment"] = "tf2.21"


def one_record_less(content: dict[str, Any]) -> None:
    """Declare one record less."""
    del subject(content, "records")["annotations"]["checksums"][0]


def one_subject_more(name: str) -> Change:
    """Return a change: one more subject."""
    return lambda content: content["subject"].append({"name": name, "digest": {"sha256": "e" * 64}})


# (what is false, engine of the environment, change).  The true result is WARNED, as the records differ.
FALSE_STATEMENTS: list[tuple[str, str, Change]] = [
    ("lines", "venv", other_digest("records")),
    ("fewer records", "venv", one_record_less),
    ("suite", "venv", other_digest("suite")),
    ("result", "venv", other_result("PASSED")),
    ("graver", "venv", other_result("FAILED")),
    ("made of nothing", "venv", without_subject("lock")),
    ("an image that is none", "venv", one_subject_more("image")),
    ("a bundle that is none", "venv", one_subject_more("bundle")),
    ("another image", "docker", other_digest("image")),
    ("no image", "docker", without_subject("image")),
    ("another place", "venv", other_environment),
    *((name, "venv", other_predicate(name, ["all of them"])) for name in ("passedTests", "failedTests", "warnedTests")),
    ("another's configuration", "venv", other_predicate("configuration", [{"name": "matrix/environments/tf2.1.toml"}])),
    ("a path beside", "venv", other_predicate("configuration", [{"name": "tf2.0.toml"}, {"name": "/etc/passwd"}])),
    ("configured by a word", "venv", other_predicate("configuration", "tf2.0.toml")),
]


@pytest.fixture
def project_and_signer(copy: Project) -> tuple[Project, Signer]:
    """Return a project without evidence, and a signer whom it trusts."""
    for path in [*copy.evidence.glob("*/*.jsonl"), *copy.matrix.glob("signatures/*/*"), *copy.matrix.glob("keys/*")]:
        path.unlink()
    lab = Signer("lab")
    lab.trust_in(copy)
    return copy, lab


def write_bundle(project: Project, lab: Signer, records: list[Record], change: Change) -> tuple[AttestationStore, str]:
    """Store records and a changed statement that a trusted key signed, as if edited by hand."""
    EvidenceStore(project.evidence).ingest(records)
    content = json.loads(parse_unverified(lab.sign(project, records)[0])[1])
    change(content)
    body = json.dumps(content).encode()
    signature = {"keyid": lab.id, "sig": base64.b64encode(lab.key.sign(pae(PAYLOAD_TYPE, body))).decode()}
    payload = base64.b64encode(body).decode()
    line = json.dumps({"payload": payload, "payloadType": PAYLOAD_TYPE, "signatures": [signature]})
    path = folder_of(project.evidence) / "nvidia-h100" / f"tf2.0{SUFFIX}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(line + "\n")
    return AttestationStore.open(project, load_matrix(project.matrix)), line


def test_a_stored_envelope_with_a_false_statement_is_not_trusted(project_and_signer: tuple[Project, Signer]) -> None:
    project, lab = project_and_signer
    for name, engine, change in [("nothing", "venv", lambda _: None), *FALSE_STATEMENTS]:
        records = batch("differs", **(H100 if engine == "venv" else {**H100, "stack": DOCKER}))
        result, line = write_bundle(project, lab, records, change)
        standing = result.index_of("nvidia-h100", "tf2.0")
        believed = {standing.trusted_signer(record.checksum, record.started) for record in records}
        if name == "nothing":
            assert (believed, standing.faults, verify_for_records(result, records, line).name) == ({"lab"}, [], "lab")
            continue
        assert believed == {""}, name
        with pytest.raises(ValueError, match=r"\w") as caught:
            verify_for_records(result, records, line)
        (fault,) = standing.faults
        assert f"tf2.0{SUFFIX}:1: " in fault and (str(caught.value) in fault or name == "another place")


def test_an_envelope_stays_valid_when_some_of_its_records_were_replaced(
    project_and_signer: tuple[Project, Signer],
) -> None:
    """The remaining records of the batch are compared with the statement."""
    project, lab = project_and_signer
    records = batch("differs", **H100)
    attestations, _ = write_bundle(project, lab, records, lambda _: None)
    (path,) = EvidenceStore(project.evidence).files()
    path.write_text(records[0].line())
    standing = attestations.index_of("nvidia-h100", "tf2.0")
    assert (standing.trusted_signer(records[0].checksum, records[0].started), standing.faults) == ("lab", [])
    attestations, _ = write_bundle(project, lab, records, other_result("PASSED"))
    path.write_text(records[0].line())
    standing = attestations.index_of("nvidia-h100", "tf2.0")
    assert (standing.trusted_signer(records[0].checksum, records[0].started), len(standing.faults)) == ("", 1)
