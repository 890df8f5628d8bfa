"""Execute each command of docs/how-to/sign-records.md, on both machines."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from test_record_rules import current_case_fields

from tfdet.base.paths import Project
from tfdet.verdicts.infer import CellKey, Verdict
from tfdet.verdicts.status_loading import load_status

GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "sign-records.md"
BLOCK = re.compile(r"^```console at=(?P<place>\w+)\n(?P<text>.*?)^```", re.M | re.S)
KEY = CellKey("tf2.0", "cpu", "bias-add-backprop", "none")


def test_the_guides_commands_print_what_it_shows(
    copy: Project, tmp_path: Path, record_line: Callable[..., bytes]
) -> None:
    for path in [*copy.matrix.glob("evidence/*/*.jsonl"), *copy.matrix.glob("signatures/*/*")]:
        path.unlink()
    machines = {"there": tmp_path / "there", "home": copy.root}
    machines["there"].mkdir()
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    (machines["there"] / "records.jsonl").write_bytes(record_line("differs", **current_case_fields(copy), started=now))
    environ = {**os.environ, "TFDET_ROOT": str(copy.root), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    states = []
    # A block's `at` says on which machine: `there` records are made, `home` has the checkout.
    for machine, text in BLOCK.findall(GUIDE.read_text("utf-8")):
        if machine == "home":  # the files of `there` arrive
            shutil.copytree(machines["there"], copy.root, dirs_exist_ok=True)
        script = "set -e\n" + "\n".join(row.removeprefix("$ ") for row in text.splitlines())
        prelude = f'tfdet() {{ "{sys.executable}" -m tfdet "$@"; }}\n'
        done = subprocess.run(
            ["bash", "-c", prelude + script], cwd=machines[machine], capture_output=True, text=True, timeout=120,
            env={**environ, "COLUMNS": "300"},
        )  # fmt: skip
        assert done.returncode == 0, (text, done.stderr)
        cell = load_status(copy).cell(KEY)
        states.append((machine, cell.inferred.verdict, cell.signed_text, done.stdout))
    assert [(name, verdict) for name, verdict, _, _ in states] == [
        ("there", Verdict.BLANK), ("there", Verdict.BLANK), ("home", Verdict.NONDETERMINISTIC), ("home", Verdict.BLANK),
    ]  # fmt: skip
    assert states[2][2] == "signed by Example Lab" and "signed by Example Lab" in states[2][3]
