"""A command imports only the modules that it needs, because each import delays every call."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tfdet.base.paths import Project

ASK = """
import sys
from tfdet.cli.main import main
sys.argv = ["tfdet", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print(*sys.modules, file=sys.stderr)
"""
SCANNER = {"numpy", "lz4", "zstandard", "tfdet.audit.scan", "tfdet.audit.wheels", "tfdet.engines.venv", "uv"}
HEAVY = SCANNER | {
    *("docker", "jinja2", "filelock", "packaging.specifiers", "multiprocessing", "tfdeterminism", "tomllib"),
    *("msgspec", "tfdet.store.records", "tfdet.store.audits", "tfdet.verdicts.status", "tfdet.verdicts.infer"),
}


@pytest.mark.parametrize(
    ("arguments", "without"),
    [
        (["envs"], HEAVY | {"rich.table"}),
        (["envs", "--json"], HEAVY),
        (["--help"], HEAVY),
        (["recipe", "--no-such-option"], HEAVY),
        (["recipe", "tf2.0"], SCANNER | {"docker"}),
        (["show", "tf2.0", "gather-backprop"], SCANNER | {"docker", "jinja2"}),
        (["status", "--json"], SCANNER | {"docker", "jinja2", "tfdet.publish.render", "tomllib"}),
        (["evidence", "add", "no-such-file"], SCANNER | {"docker", "jinja2"}),
        (["doctor"], SCANNER - {"uv"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_no_command_loads_what_it_does_not_need(checkout: Project, arguments: list[str], without: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASK, *arguments], cwd=checkout.root, capture_output=True, text=True, timeout=120
    )
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "tfdet.cli" in loaded
    assert loaded & without == set()
