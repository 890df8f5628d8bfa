"""The benchmark that generates records for all environments of the matrix runs, whatever environments there are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_records_are_generated_for_each_environment_with_a_cpu() -> None:
    command = [sys.executable, ROOT / "benchmarks" / "status.py", "200"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "200 records" in done.stdout
