"""Ctrl-C and kills at random moments of `evidence add` and `evidence sign`: all of it is there, or nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import weekly
from records import make_record
from signers import H100, Signer, write_attestations

from tfdet.base.errors import ExitCode
from tfdet.base.paths import Project
from tfdet_common import journal

PARTIAL_FILE = ".jsonl.intoto.jsonl.part"
ATTEMPTS = int(os.environ.get("STORE_INTERRUPTS", weekly.scale_count(100)))


@pytest.mark.no_cover
def test_an_interrupt_leaves_the_old_or_the_new_state(copy: Project, tmp_path: Path) -> None:
    for path in copy.evidence.glob("*/*.jsonl"):
        path.unlink()
    signer, records = Signer("lab"), tmp_path / "records.jsonl"
    made = [make_record("differs", machine=name * 12, **H100) for name in "ab"]
    records.write_text("".join(journal.dump(record) + "\n" for record in made), "ascii")
    write_attestations(copy, records, signer)
    key = tmp_path / "key.pem"
    key.write_bytes(signer.private_pem)
    key.chmod(0o600)
    environ = {**os.environ, "TFDET_ROOT": str(copy.root), "TFDET_KEY": str(key)}
    script = Path(__file__).with_name("interrupted_commands.py")
    done = subprocess.run(
        [sys.executable, script, copy.root, records, str(ATTEMPTS), str(weekly.DAY // 7)],  # the week is the seed
        env=environ, capture_output=True, text=True, timeout=60 + 30 * ATTEMPTS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outcomes, *attempts = map(json.loads, done.stdout.splitlines())
    assert len(attempts) == ATTEMPTS
    assert all(outcome["before"] != outcome["after"] for outcome in outcomes.values())
    for attempt in attempts:
        outcome, what = outcomes[attempt["command"]], (attempt["command"], attempt["signal"], attempt["moment"])
        assert attempt["code"] in (ExitCode.OK, ExitCode.INTERRUPTED, -9), (what, attempt["err"])
        assert "Traceback" not in attempt["err"], (what, attempt["err"])
        # A kill may leave a temporary file beside a user's file; the next run replaces it.
        state = {
            name: lines for name, lines in attempt["state"].items() if not name.endswith("unsigned" + PARTIAL_FILE)
        }
        assert state in (outcome["before"], outcome["after"]), what
        assert attempt["code"] != ExitCode.OK or state == outcome["after"], what
        assert (attempt["code_again"], attempt["again"]) == (ExitCode.OK, outcome["after"]), what
    assert {attempt["code"] for attempt in attempts} >= {ExitCode.INTERRUPTED, -9}
