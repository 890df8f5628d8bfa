"""Trust in records: keys, envelopes, the keys in matrix/keys, and their effect on tables."""

from __future__ import annotations

import base64
import hashlib
import json
import stat
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from signers import H100, Signer, run_tfdet, write_bundle
from test_record_rules import current_case_fields

from tfdet.base.errors import DataError, ExitCode
from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.store.cases import current_cases
from tfdet.store.dsse import pae
from tfdet.store.evidence import EvidenceStore
from tfdet.store.records import Record, parse
from tfdet.store.signatures import AttestationStore
from tfdet.verdicts.infer import CellKey, InferredCell, Verdict
from tfdet.verdicts.status_loading import load_status

Line = Callable[..., bytes]
KEY = CellKey("tf2.0", "nvidia-h100", "bias-add-backprop", "none")


@pytest.fixture
def project(copy: Project) -> Project:
    """A project without records or trusted keys, to which a test adds."""
    for path in [
        *copy.matrix.glob("evidence/*/*.jsonl"),
        *copy.matrix.glob("signatures/*/*"),
        *copy.matrix.glob("keys/*"),
    ]:
        path.unlink()
    return copy


@pytest.fixture
def batch(project: Project, record_line: Line) -> Callable[..., list[Record]]:
    """Return a function batch(observation, machine=...) that makes records of two cases and days, on an H100."""
    # The source has one case function, under its current and an earlier hash; cases: its (case, mode) pairs.
    (code, cases), _ = ((code, cases) for (n, code), cases in current_cases(project).by_hash.items() if n == KEY.source)

    def create(observation: str = "differs", **changes: Any) -> list[Record]:
        given = {**H100, "case_hash": code, **changes}
        two = enumerate(sorted(cases or ())[:2], 1)
        return [
            parse(record_line(observation, **given, case=case, mode=mode, started=f"2026-02-0{day}T00:00:00Z"))
            for day, (case, mode) in two
        ]

    return create


def cell(project: Project, key: CellKey = KEY, **how: bool) -> InferredCell:
    """Return the cell as inferred from the project's evidence; how: arguments of load_status."""
    return load_status(project, **how).verdict(key)


def add_signed(project: Project, records: list[Record], *signers: Signer) -> None:
    """Add the records with an envelope of each signer."""
    envelopes = [line for signer in signers for line in signer.sign(project, records)]
    done = run_tfdet(project, "evidence", "add", "--yes", write_bundle(project, "batch.jsonl", records, envelopes))
    assert done.returncode == 0, done.stderr


# Formats: what others' tools can check without a line of ours.


def test_signed_bytes_equal_the_test_vector_of_dsse() -> None:
    """The test vector is that of DSSE's protocol.md."""
    assert (
        pae("http://example.com/HelloWorld", b"hello world")
        == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert pae("ä", b"") == b"DSSEv1 2 \xc3\xa4 0 ", "lengths are of bytes"


def test_an_envelope_verifies_with_the_public_key_alone(project: Project, batch: Any) -> None:
    records, signer = batch(), Signer("lab")
    path = write_bundle(project, "batch.jsonl", records)
    (line,) = signer.sign(project, records)
    envelope = json.loads(line)
    body = base64.b64decode(envelope["payload"])
    signed = b" ".join([b"DSSEv1 28 application/vnd.in-toto+json", str(len(body)).encode(), body])
    signer.key.public_key().verify(base64.b64decode(envelope["signatures"][0]["sig"]), signed)
    statement = json.loads(body)
    assert (statement["_type"], statement["predicateType"]) == (
        "https://in-toto.io/Statement/v1",
        "https://in-toto.io/attestation/test-result/v0.1",
    )
    subjects = {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
    assert subjects["records"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert subjects["lock"] == hashlib.sha256(project.lock("tf2.0", "gpu").read_bytes()).hexdigest()
    assert subjects["suite"] == hashlib.sha256(f"bias-add-backprop {records[0].case_hash}\n".encode()).hexdigest()
    assert statement["predicate"]["result"] == "WARNED"
    assert all("digest" in entry for entry in statement["predicate"]["configuration"])


def test_the_image_is_the_subject_where_there_is_one(project: Project, batch: Any) -> None:
    stack = {**H100["stack"], "image_digest": f"tfdet@sha256:{'c' * 64}", "engine": "docker"}
    (line,) = Signer("lab").sign(project, batch(stack=stack))
    subjects = json.loads(base64.b64decode(json.loads(line)["payload"]))["subject"]
    assert {subject["name"] for subject in subjects} == {"records", "image", "suite"}


# The key of a machine.


def test_a_key_file_is_private_and_outside_of_the_checkout(project: Project) -> None:
    assert run_tfdet(project, "key", "show").returncode == ExitCode.USAGE
    assert run_tfdet(project, "key", "new").returncode == 0
    (private,) = (project.root / "config").rglob("key.pem")
    assert (stat.S_IMODE(private.stat().st_mode), stat.S_IMODE(private.parent.stat().st_mode)) == (0o600, 0o700)
    before = private.read_bytes()
    second_run = run_tfdet(project, "key", "new")
    assert (second_run.returncode, private.read_bytes()) == (ExitCode.USAGE, before)
    public = run_tfdet(project, "key", "show").stdout
    assert load_pem_public_key(public.encode())
    private.chmod(0o640)
    assert "others can read" in run_tfdet(project, "key", "show").stderr


def test_the_file_that_key_show_writes_is_one_of_matrix_keys(project: Project) -> None:
    run_tfdet(project, "key", "new")
    text = run_tfdet(project, "key", "show", "--signer", 'A "lab"', "--device", "nvidia").stdout
    (project.matrix / "keys").mkdir(exist_ok=True)
    (project.matrix / "keys" / "lab.toml").write_text(text)
    (key,) = load_matrix(project.matrix).keys.by_name.values()
    assert (key.signer, [scope.device for scope in key.trusted_for], key.revoked) == ('A "lab"', ["nvidia"], None)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('device = "nvidia"', 'device = "tpu"', "not a kind of device"),
        ("BEGIN PUBLIC KEY", "BEGIN PRIVATE KEY", "a public key in PEM"),
        ("MCowBQYDK2Vw", "MCowBQYDK2Vu", "no public key of Ed25519"),
        ("since", "sincere", "sincere"),
        ("since = 2026-01-01", "since = 2026-01-01\nuntil = 2025-01-01", "is before since"),
    ],
)
def test_an_invalid_key_is_reported_with_its_file(project: Project, before: str, after: str, message: str) -> None:
    path = Signer("lab").trust_in(project)
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(DataError, match=message) as caught:
        load_matrix(project.matrix)
    assert "keys/lab.toml" in caught.value.cause


def test_a_key_in_two_files_is_refused(project: Project) -> None:
    lab = Signer("lab")
    lab.trust_in(project)
    Signer("other", lab.key).trust_in(project)
    with pytest.raises(DataError, match=r"the key of keys/lab\.toml"):
        load_matrix(project.matrix)


# What tables make of it.


def test_a_forged_batch_of_a_gpu_changes_no_cell(project: Project, batch: Any) -> None:
    before = run_tfdet(project, "status", "--json").stdout
    add_signed(project, batch())
    assert len(EvidenceStore.open(project).files()) == 1, "kept, as what it is"
    assert run_tfdet(project, "status", "--json").stdout == before
    assert cell(project, include_unsigned=True).verdict is Verdict.NONDETERMINISTIC
    output = run_tfdet(project, "show", "tf2.0", "bias-add-backprop").stdout
    assert "unsigned records of nvidia-h100 count in no table" in " ".join(output.split())


def test_a_forged_batch_in_the_store_is_reported_and_not_counted(project: Project, batch: Any) -> None:
    before = run_tfdet(project, "status", "--json").stdout
    folder = project.matrix / "signatures" / "nvidia-h100"
    folder.mkdir(parents=True)
    EvidenceStore.open(project).ingest(batch())
    (folder / "tf2.0.intoto.jsonl").write_text("".join(Signer("thief").sign(project, batch())))
    assert run_tfdet(project, "status", "--json").stdout == before
    done = run_tfdet(project, "status", "--check")
    assert done.returncode == ExitCode.USAGE
    assert "tf2.0.intoto.jsonl:1: signed by a key that matrix/keys does not hold" in done.stderr


def test_records_signed_by_a_trusted_key_are_counted(project: Project, batch: Any) -> None:
    lab = Signer("lab")
    lab.trust_in(project)
    add_signed(project, batch(), lab)
    found = load_status(project).cell(KEY)
    assert (found.backing, found.inferred.signed, found.inferred.verified) == ("measured", True, False)
    assert found.backing_text == "measured by a single machine, signed by lab"
    assert "signed by lab" in run_tfdet(project, "show", "tf2.0", "bias-add-backprop").stdout
    assert run_tfdet(project, "status", "--write").returncode == 0
    assert run_tfdet(project, "status", "--check").returncode == 0


def test_a_stolen_key_is_revoked_and_its_cells_change_at_once(project: Project, batch: Any) -> None:
    lab = Signer("lab")
    lab.trust_in(project)
    add_signed(project, batch(), lab)
    assert cell(project).verdict is Verdict.NONDETERMINISTIC
    before = EvidenceStore.open(project).files()[0].read_bytes()
    lab.write_revoked_key(project)
    assert cell(project).verdict is Verdict.BLANK
    assert cell(project, include_unsigned=True).verdict is Verdict.BLANK, "set aside is less than unsigned"
    assert EvidenceStore.open(project).files()[0].read_bytes() == before, "aside, not away"
    output = " ".join(run_tfdet(project, "show", "tf2.0", "bias-add-backprop").stdout.split())
    assert "not counted: lab is revoked on 2026-11-22: stolen" in output


@pytest.mark.parametrize(
    ("device", "rest", "message"),
    [
        ("cpu", "", "not trusted for nvidia-h100"),
        ("nvidia", '\n\nmodels = ["nvidia-h200"]', "not trusted for nvidia-h100"),
        ("nvidia", '\n\nlines = ["ngc"]', "not trusted for nvidia-h100"),
        ("nvidia", '\n\nframework = "torch"', "not trusted for nvidia-h100"),
        ("nvidia", "until = 2026-02-01", "not trusted for records of 2026-02-02"),
    ],
)
def test_a_key_is_trusted_only_for_what_its_file_lists(
    project: Project, batch: Any, device: str, rest: str, message: str
) -> None:
    lab, records = Signer("lab"), batch()
    lab.trust_in(project, device, rest)
    done = run_tfdet(
        project, "evidence", "add", "--yes", write_bundle(project, "b.jsonl", records, lab.sign(project, records))
    )
    assert (done.returncode, message in done.stderr) == (ExitCode.USAGE, True)
    assert not EvidenceStore.open(project).files()
    lab.trust_in(project)  # what was believed once, and is not any more, is set aside
    add_signed(project, records, lab)
    lab.trust_in(project, device, rest)
    expected = 10 if "until" in rest else 0  # one of the two records is of a day on which it was
    assert cell(project).runs == expected


def test_an_unsigned_record_never_replaces_a_signed_one(project: Project, batch: Any, record_line: Line) -> None:
    """It may copy machine, stack and case, and be newer and have more runs."""
    lab = Signer("lab")
    lab.trust_in(project)
    add_signed(project, batch(), lab)
    before = cell(project)
    for changes in ({}, {"case_hash": "0123456789abcdef"}):
        forged = {**H100, **current_case_fields(project), "started": "2026-03-01T00:00:00Z", "relaunches": 5, **changes}
        for observation in ("differs", "equal"):
            add_signed(project, [parse(record_line(observation, **forged))])
    assert cell(project) == before
    assert run_tfdet(project, "status", "--write").returncode == 0, "the store is in order"


def test_unsigned_records_do_not_decide_beside_signed_ones(project: Project, batch: Any) -> None:
    lab, key, cpu = Signer("lab"), KEY._replace(device="cpu"), {"device": "cpu", "ran_on": ["CPU:0"]}
    lab.trust_in(project, "cpu")
    stack = {**H100["stack"], "gpu": None, "driver": None, "compute_capability": None}
    add_signed(project, batch("differs", **cpu, stack=stack, machine="f" * 12))
    assert (cell(project, key).verdict, cell(project, key).signed) == (Verdict.NONDETERMINISTIC, False)
    assert load_status(project).cell(key).backing_text == "measured by a single machine, unsigned"
    add_signed(project, batch("equal", **cpu, stack=stack), lab)
    assert (cell(project, key).verdict, cell(project, key).signed) == (Verdict.NOT_SHOWN, True)


def test_stored_records_can_be_signed_again(project: Project, batch: Any) -> None:
    add_signed(project, batch())
    (path,) = EvidenceStore.open(project).files()
    run_tfdet(project, "key", "new")
    refused = run_tfdet(project, "evidence", "sign", path)
    assert (refused.returncode, "tfdet key show" in refused.stderr) == (ExitCode.USAGE, True)
    (project.matrix / "keys").mkdir(exist_ok=True)
    # `key show` writes today's date as `since`, and the records are older.
    (project.matrix / "keys" / "own.toml").write_text(
        run_tfdet(project, "key", "show", "--signer", "us").stdout.replace("since = 2026", "since = 2025")
    )
    assert run_tfdet(project, "evidence", "sign", path).returncode == 0
    assert cell(project).signed
    assert not cell(project).verified


def test_files_of_the_store_are_signed_together_or_not_at_all(project: Project, batch: Any) -> None:
    cpu = {**H100["stack"], "gpu": None, "driver": None, "compute_capability": None}
    add_signed(project, batch(device="cpu", ran_on=["CPU:0"], stack=cpu))
    add_signed(project, batch())
    paths = EvidenceStore.open(project).files()
    assert [path.parent.name for path in paths] == ["cpu", "nvidia-h100"]
    run_tfdet(project, "key", "new")
    (project.matrix / "keys").mkdir(exist_ok=True)
    for devices, code, signed in ((["cpu"], ExitCode.USAGE, 0), (["cpu", "nvidia"], ExitCode.OK, 2)):
        options = [word for device in devices for word in ("--device", device)]
        text = run_tfdet(project, "key", "show", "--signer", "us", *options).stdout
        (project.matrix / "keys" / "own.toml").write_text(text.replace("since = 2026", "since = 2025"))
        done = run_tfdet(project, "evidence", "sign", *paths)
        assert (done.returncode, len(list(project.matrix.glob("signatures/*/*")))) == (code, signed), done.stderr


# Corroboration.


def add_side(
    project: Project, batch: Any, name: str, observation: str, machine: str, holder: str = "", **fields: Any
) -> None:
    """Store a batch that this signer signed; holder: another name in the key's file than the signer's."""
    signer = Signer(name)
    signer.trust_in(project, holder=holder)
    add_signed(project, batch(observation, machine=machine * 12, **fields), signer)


def test_two_signers_with_machines_of_their_own_verify_a_cell(project: Project, batch: Any) -> None:
    add_side(project, batch, "lab", "differs", "a")
    assert not cell(project).verified
    add_side(project, batch, "yard", "differs", "b")
    found = load_status(project).cell(KEY)
    assert (found.inferred.verified, found.inferred.machines, found.inferred.agreeing_machines) == (True, 2, 2)
    assert "verified: lab and yard say the same" in found.backing_text
    assert found.as_json()["signers_agreeing"] == ["lab", "yard"]


def test_two_signers_of_one_machine_do_not_verify_a_cell(project: Project, batch: Any) -> None:
    add_side(project, batch, "lab", "differs", "a")
    add_side(project, batch, "yard", "differs", "a", duration_seconds=2.5)
    assert ([signer.signer for signer in cell(project).signers], cell(project).verified) == (["lab", "yard"], False)


def test_two_keys_of_one_holder_do_not_verify_a_cell(project: Project, batch: Any) -> None:
    add_side(project, batch, "lab-1", "differs", "a", holder="lab")
    add_side(project, batch, "lab-2", "differs", "b", holder="lab")
    assert (cell(project).machines, cell(project).verified) == (2, False)
    add_side(project, batch, "yard", "differs", "c")
    assert cell(project).verified


def test_a_second_signature_of_the_same_records_does_not_verify_a_cell(project: Project, batch: Any) -> None:
    lab, yard = Signer("lab"), Signer("yard")
    lab.trust_in(project)
    yard.trust_in(project)
    add_signed(project, batch(), lab, yard)
    assert [s.signer for s in cell(project).by_signer] == ["lab"]
    assert not cell(project).verified
    lab.write_revoked_key(project)
    assert [s.signer for s in cell(project).by_signer] == ["yard"], "another still vouches for them"


def test_a_disagreement_is_shown_with_both_sides(project: Project, batch: Any) -> None:
    add_side(project, batch, "lab", "differs", "a")
    add_side(project, batch, "yard", "equal", "b")
    found = load_status(project).cell(KEY)
    assert (found.inferred.signers_conflict, found.inferred.verified, found.inferred.agreeing_machines) == (
        True,
        False,
        1,
    )
    assert "lab says nondeterministic (20 of 20 runs differed); yard says not shown to differ" in found.backing_text
    output = " ".join(run_tfdet(project, "show", "tf2.0", "bias-add-backprop").stdout.split())
    assert "signers disagree" in output
    assert [signer["signer"] for signer in found.as_json()["disagreement"]] == ["lab", "yard"]


def test_an_envelope_of_the_store_that_comes_again_is_kept_once(
    project: Project, batch: Callable[..., list[Record]]
) -> None:
    """Envelopes hold most of the memory of `evidence add` if all of its records are known."""
    records, lab = batch(), Signer("lab")
    lab.trust_in(project)
    add_signed(project, records, lab)
    store = AttestationStore.open(
        project,
        load_matrix(project.matrix),
        [
            text.strip()
            for text in (project.matrix / "signatures/nvidia-h100/tf2.0.intoto.jsonl").read_text().splitlines()
        ],
        {record.checksum: record.line().encode("ascii") for record in records}.get,
    )
    (attestation,) = store.index_of("nvidia-h100", "tf2.0").attestations
    assert not attestation.line
