"""An installed tfdet trusts its user's own keys besides the packaged ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from signers import Signer
from test_record_rules import current_case_fields

from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.store.evidence import EvidenceStore
from tfdet.store.records import parse
from tfdet.store.signatures import AttestationStore, verify_for_records
from tfdet.verdicts.infer import CellKey
from tfdet.verdicts.status_loading import load_status

KEY = CellKey("tf2.0", "cpu", "bias-add-backprop", "none")


def test_a_users_key_is_trusted_but_replaces_no_packaged_key(
    copy: Project, tmp_path: Path, record_line: Callable[..., bytes]
) -> None:
    for path in copy.evidence.glob("*/*.jsonl"):
        path.unlink()
    installed, lab = Project(copy.root, user_data=tmp_path / "home"), Signer("lab")
    installed.user_keys.mkdir(parents=True)
    lab.trust_in(copy, "cpu").rename(installed.user_keys / "lab.toml")
    records = [parse(record_line("differs", **current_case_fields(copy), started="2026-02-01T00:00:00Z"))]
    signatures = AttestationStore.open(installed, load_matrix(installed.matrix, installed.user_keys))
    EvidenceStore.open(installed).ingest(
        records, [verify_for_records(signatures, records, envelope) for envelope in lab.sign(copy, records)]
    )
    assert load_status(installed).cell(KEY).signed_text == "signed by lab"
    lab.write_revoked_key(copy, "cpu")  # as the next release of tfdet would: a stolen key
    with pytest.raises(DataError, match=r"home/keys/lab.toml: tfdet has a key of that name"):
        load_status(installed)
