"""The programs of the reports to PyTorch's maintainers, run in a real PyTorch."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import weekly

from tfdet.base.paths import Project, find_project
from tfdet.engines.venv import VenvEngine
from tfdet.matrix import upstream
from tfdet.matrix.load import load_matrix
from tfdet.matrix.upstream import UpstreamFinding
from tfdet.publish.upstream_reports import PROGRAMS

FINDINGS = upstream.load(find_project().matrix, "torch")


@pytest.fixture(scope="module")
def gpu_build(checkout: Project) -> Path:
    """Return the Python with PyTorch's CUDA build, without NVIDIA's libraries."""
    environment = load_matrix(checkout.matrix).environment("torch2.14")
    return VenvEngine(checkout).interpreter("torch2.14", environment, "gpu", without_vendor_libraries=True)


@pytest.mark.parametrize(
    "finding",
    weekly.select_for_today([finding for finding in FINDINGS if finding.emulated_output], days=3),
    ids=lambda finding: finding.key,
)
def test_programs_for_the_cpu_show_their_finding(gpu_build: Path, finding: UpstreamFinding) -> None:
    """The virtual GPU emulates a GPU on the CPU."""
    program = Path(__file__).parents[2] / PROGRAMS / finding.program
    command = [sys.executable, "-m", "tfdet", "vgpu", "--schedule", "random:1", "--", str(gpu_build), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert re.search(finding.emulated_output or "", done.stdout), done.stdout


@pytest.mark.parametrize("finding", weekly.select_for_today(FINDINGS, days=3), ids=lambda finding: finding.key)
def test_programs_for_gpus_show_their_finding(torch_python: Path, finding: UpstreamFinding) -> None:
    """Run here without a GPU, which changes what they print."""
    program = Path(__file__).parents[2] / PROGRAMS / finding.program
    done = subprocess.run(
        [str(torch_python), "-W", "ignore", str(program)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("torch 2.")
    assert re.search(finding.reproducer_output, done.stdout), done.stdout
