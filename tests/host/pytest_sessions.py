"""A session of `pytest --tfdet` in a folder, with a framework that computes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fleets import ROOT

ARGUMENTS = ["--tfdet", "--tfdet-framework", "bare", "--tfdet-repeats", "5"]
ENVIRON = {**os.environ, "TFDET_FRAMEWORKS": str(ROOT / "tests" / "meta" / "frameworks"), "TFDET_ROOT": str(ROOT)}


def run_session(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *words]
    return subprocess.run(command, cwd=folder, env=ENVIRON, capture_output=True, text=True)
