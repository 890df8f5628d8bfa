"""Signatures by a workflow's identity: a bundle of sigstore's staging instance, and forged ones."""

# ruff: noqa: F811
from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from signers import Signer, run_tfdet, write_bundle
from sigstore.verify import Verifier
from test_trust import KEY, batch, project  # noqa: F401

from tfdet.base.errors import ExitCode
from tfdet.base.paths import Project
from tfdet.matrix.keys import GITHUB, Keyring, PublicKey
from tfdet.matrix.load import load_matrix
from tfdet.store import in_toto, keyless
from tfdet.store.dsse import PAYLOAD_TYPE
from tfdet.store.evidence import EvidenceStore
from tfdet.store.records import Record
from tfdet.store.signatures import AttestationStore, unverified_signers, verify_for_records
from tfdet.verdicts.status_loading import load_status

BUNDLE = json.loads((Path(__file__).parent / "sigstore" / "staging.json").read_text("utf-8"))
WORKFLOW = (
    "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/"
    "extremely-dangerous-oidc-beacon.yml@refs/heads/main"
)
FILE = """
signer = "conformance"
since = 2026-01-01
[workflow]
identity = "{identity}"
[[trusted_for]]
device = "nvidia"
"""


def keyring(identity: str = WORKFLOW, issuer: str = GITHUB) -> Keyring:
    """Return a keyring that trusts one workflow's identity for GPUs."""
    content = {"signer": "conformance", "since": "2026-01-01", "trusted_for": [{"device": "nvidia"}]}
    workflow = {"identity": identity, "issuer": issuer}
    return Keyring({"conformance": PublicKey.model_validate_json(json.dumps({**content, "workflow": workflow}))})


def changed_bundle(*path: str | int, to: Any) -> str:
    """Return the bundle with the value at that path replaced by to(value)."""
    content: Any = json.loads(json.dumps(BUNDLE))
    parent = content
    for name in path[:-1]:
        parent = parent[name]
    parent[path[-1]] = to(parent[path[-1]])
    return json.dumps(content)


def with_flipped_bit(text: str) -> str:
    """Flip one bit of the first byte."""
    content = bytearray(base64.b64decode(text))
    content[0] ^= 1
    return base64.b64encode(content).decode()


@pytest.fixture
def staging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Trust the staging instance in this test only."""
    monkeypatch.setattr(keyless, "_verifier", lambda: Verifier.staging(offline=True))
    yield


def test_a_bundle_signed_by_a_workflow_is_verified(staging: None) -> None:
    name, key, body = keyless.verify_sigstore_bundle(json.dumps(BUNDLE), keyring())
    assert (name, key.id) == ("conformance", WORKFLOW)
    assert json.loads(body)["subject"][0]["name"] == "a.txt"


def test_an_untrusted_identity_is_no_signer(staging: None) -> None:
    with pytest.raises(ValueError, match="an identity that matrix/keys does not hold"):
        keyless.verify_sigstore_bundle(
            json.dumps(BUNDLE), keyring(WORKFLOW.replace("refs/heads/main", "refs/heads/other"))
        )


def test_an_identity_of_another_issuer_is_not_trusted(staging: None) -> None:
    with pytest.raises(ValueError, match="OIDCIssuer does not match"):
        keyless.verify_sigstore_bundle(json.dumps(BUNDLE), keyring(issuer="https://accounts.example.org"))


def test_the_staging_instance_is_not_trusted() -> None:
    with pytest.raises(ValueError, match="not that of conformance"):
        keyless.verify_sigstore_bundle(json.dumps(BUNDLE), keyring())


DAMAGED = {
    "payload": changed_bundle("dsseEnvelope", "payload", to=lambda text: base64.b64encode(b"{}").decode()),
    "type": changed_bundle("dsseEnvelope", "payloadType", to=lambda text: "text/plain"),
    "signature": changed_bundle("dsseEnvelope", "signatures", 0, "sig", to=lambda text: text[:20] + "AAAA" + text[24:]),
    "certificate": changed_bundle("verificationMaterial", "certificate", "rawBytes", to=with_flipped_bit),
    "log": changed_bundle("verificationMaterial", "tlogEntries", to=lambda entries: []),
    "time": changed_bundle("verificationMaterial", "timestampVerificationData", to=lambda data: {}),
    "no envelope": changed_bundle("dsseEnvelope", to=lambda envelope: None),
    "no certificate": changed_bundle("verificationMaterial", "certificate", to=lambda certificate: None),
    "cut": json.dumps(BUNDLE)[:-40],
    "a word": f'"{keyless.MEDIA_TYPE}"',
}


@pytest.mark.parametrize("part", DAMAGED)
def test_a_changed_bundle_is_refused(staging: None, part: str) -> None:
    with pytest.raises(ValueError):
        keyless.verify_sigstore_bundle(DAMAGED[part], keyring())


# (what of the certificate's DER is replaced, by what); the library has an exception of its own for each of them.
CERTIFICATES = {
    "version 2": (b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x01"),
    "no such version": (b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x07"),
    "an extension twice": (b"\x06\x03\x55\x1d\x0e", b"\x06\x03\x55\x1d\x25"),
    "an unknown critical extension": (b"\x06\x03\x55\x1d\x0f\x01\x01\xff", b"\x06\x03\x55\x1d\x7f\x01\x01\xff"),
    "an x400 name": (b"\x86\x81", b"\xa3\x81"),
    "an EDI name": (b"\x86\x81", b"\xa5\x81"),
    "a name that is no ASCII": (b"https://", b"https:/\xff"),
    "a curve that is none": (b"\x2a\x86\x48\xce\x3d\x03\x01\x07", b"\x2a\x86\x48\xce\x3d\x03\x01\x7f"),
    "no such algorithm": (b"\x2a\x86\x48\xce\x3d\x04\x03\x03", b"\x2a\x86\x48\xce\x3d\x04\x03\x7f"),
}


@pytest.mark.parametrize("part", CERTIFICATES)
def test_an_invalid_certificate_is_refused(staging: None, part: str) -> None:
    old, new = CERTIFICATES[part]

    def forged(text: str) -> str:
        content = base64.b64decode(text)
        assert old in content
        return base64.b64encode(content.replace(old, new)).decode()

    line = changed_bundle("verificationMaterial", "certificate", "rawBytes", to=forged)
    with pytest.raises(ValueError):
        keyless.verify_sigstore_bundle(line, keyring())
    unverified_signers([line])  # it may be in a store already


def test_records_of_a_trusted_workflow_are_counted(
    project: Project,
    batch: Callable[..., list[Record]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fake certificate authority signs, because the real one cannot sign a test's statement."""
    records = batch()
    statement = in_toto.to_statement(project, records)
    own_bundle = changed_bundle("dsseEnvelope", "payload", to=lambda text: base64.b64encode(statement).decode())
    (project.matrix / "keys" / "conformance.toml").write_text(FILE.format(identity=WORKFLOW))

    class Vouches:
        def verify_dsse(self, bundle: Any, policy: Any) -> tuple[str, bytes]:
            return PAYLOAD_TYPE, statement

    monkeypatch.setattr(keyless, "_verifier", Vouches)
    matrix = load_matrix(project.matrix)
    EvidenceStore.open(project).ingest(
        records, [verify_for_records(AttestationStore.open(project, matrix), records, own_bundle)]
    )
    assert load_status(project).cell(KEY).inferred.runs
    monkeypatch.setattr(keyless, "_verifier", lambda: Verifier.staging(offline=True))
    assert not load_status(project).cell(KEY).inferred.runs  # the true verifier sees that the payload was changed


def test_a_forged_bundle_changes_no_cell(project: Project, batch: Callable[..., list[Record]]) -> None:
    records = batch()
    statement = base64.b64encode(in_toto.to_statement(project, records)).decode()
    (project.matrix / "keys" / "conformance.toml").write_text(FILE.format(identity=WORKFLOW))
    path = write_bundle(
        project, "records.jsonl", records, [changed_bundle("dsseEnvelope", "payload", to=lambda text: statement) + "\n"]
    )
    done = run_tfdet(project, "evidence", "add", "--yes", str(path))
    assert done.returncode == ExitCode.USAGE and "not that of conformance" in done.stderr
    assert not load_status(project).cell(KEY).inferred.runs


def test_outside_of_ci_keyless_signing_is_refused(project: Project, batch: Callable[..., list[Record]]) -> None:
    path = write_bundle(project, "records.jsonl", batch())
    done = run_tfdet(project, "evidence", "sign", "--keyless", str(path), GITHUB_ACTIONS="", CI="")
    assert done.returncode == ExitCode.RUN_FAILED
    assert "nothing here proves who this is" in done.stderr


def test_a_file_has_a_key_or_an_identity(project: Project) -> None:
    signer = Signer("both").trust_in(project)
    signer.write_text(signer.read_text() + f'[workflow]\nidentity = "{WORKFLOW}"\n')
    done = run_tfdet(project, "status", "--check")
    assert done.returncode == ExitCode.USAGE
    assert "both.toml" in done.stderr and "and not both" in " ".join(done.stderr.split())


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sigstore.models", None)
    with pytest.raises(ValueError, match=r"tfdet\[keyless\]"):
        keyless.verify_sigstore_bundle(json.dumps(BUNDLE), keyring())
