"""The programs of the texts for PyTorch's maintainers, in a real PyTorch on a processor."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tfdet.base.paths import find_project
from tfdet.matrix import upstream
from tfdet.matrix.upstream import UpstreamFinding
from tfdet.publish.upstream_reports import PROGRAMS


@pytest.mark.parametrize("finding", upstream.load(find_project().matrix, "torch"), ids=lambda finding: finding.key)
def test_the_program_shows_it(torch_python: Path, finding: UpstreamFinding) -> None:
    program = Path(__file__).parents[2] / PROGRAMS / finding.program
    done = subprocess.run(
        [str(torch_python), "-W", "ignore", str(program)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("torch 2.")
    assert re.search(finding.reproducer_output, done.stdout), done.stdout
