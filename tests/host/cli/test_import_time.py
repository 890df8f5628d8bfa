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
MODULES_OF_AUDIT = {"numpy", "lz4", "zstandard", "tfdet.audit.scan", "tfdet.audit.wheels", "tfdet.engines.venv", "uv"}
SLOW_MODULES = MODULES_OF_AUDIT | {
    *("docker", "jinja2", "filelock", "packaging.specifiers", "multiprocessing", "tfdeterminism", "tomllib"),
    *("msgspec", "tfdet.store.records", "tfdet.store.audits", "tfdet.verdicts.status", "tfdet.verdicts.infer"),
}


@pytest.mark.parametrize(
    ("arguments", "without"),
    [
        (["envs"], SLOW_MODULES | {"rich.table"}),
        (["envs", "--json"], SLOW_MODULES),
        (["--help"], SLOW_MODULES),
        (["recipe", "--no-such-option"], SLOW_MODULES),
        (["recipe", "tf2.0"], MODULES_OF_AUDIT | {"docker"}),
        (["show", "tf2.0", "gather-backprop"], MODULES_OF_AUDIT | {"docker", "jinja2"}),
        (["status", "--json"], MODULES_OF_AUDIT | {"docker", "jinja2", "tfdet.publish.render", "tomllib"}),
        (["evidence", "add", "no-such-file"], MODULES_OF_AUDIT | {"docker", "jinja2"}),
        (["doctor"], MODULES_OF_AUDIT - {"uv"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_each_command_imports_no_module_that_it_does_not_need(
    checkout: Project, arguments: list[str], without: set[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASK, *arguments], cwd=checkout.root, capture_output=True, text=True, timeout=120
    )
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "tfdet.cli" in loaded
    assert loaded & without == set()
