"""Every program of the site's guide runs in the TensorFlow versions above it; every command exists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import weekly
from test_docs import BLOCK, PLAIN, run_programs
from typer.testing import CliRunner

from tfdet.base.paths import Project
from tfdet.cli.main import app

GUIDE = Path(__file__).parents[2] / "src" / "tfdet" / "site" / "content" / "guide.markdown"
VERSIONS = sorted({v for block in BLOCK.finditer(GUIDE.read_text("utf-8")) for v in block["versions"].split(",")})


def test_every_program_says_where_it_runs() -> None:
    assert not PLAIN.search(GUIDE.read_text("utf-8"))
    assert {"1.14", "2.0", "2.1", "2.8", "2.21"} <= set(VERSIONS)


@pytest.mark.tensorflow
@pytest.mark.parametrize("version", weekly.select_for_today(VERSIONS, days=3))
def test_the_guides_programs_run(checkout: Project, tf_python: Callable[[str], Path], version: str) -> None:
    blocks = [b for b in BLOCK.finditer(GUIDE.read_text("utf-8")) if version in b["versions"].split(",")]
    run_programs(tf_python(f"tf{version}"), checkout, *(block["text"] for block in blocks))


def test_every_command_is_there() -> None:
    commands = re.findall(r"^\$ tfdet (.+)$", GUIDE.read_text("utf-8"), re.M)
    assert {shlex.split(command)[0] for command in commands} == {"recipe", "locate"}
    done = CliRunner().invoke(app, ["recipe", "tf2.0"])
    assert done.exit_code == 0 and "tfdeterminism.enable_determinism" in done.output
    assert CliRunner().invoke(app, ["locate", "--help"]).exit_code == 0
