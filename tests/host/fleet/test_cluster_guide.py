"""Execute the commands of docs/how-to/run-on-a-cluster.md, on the cluster and on the user's machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import weekly

from tfdet.base.paths import Project
from tfdet.cli import fleet as command
from tfdet.fleet import tasks
from tfdet.store.records import read_records

GUIDE = (Path(__file__).parents[3] / "docs" / "how-to" / "run-on-a-cluster.md").read_text("utf-8")
BLOCK = re.compile(r"^```console at=(?P<place>\w+)\n(?P<text>.*?)^```", re.M | re.S)


@weekly.on_day(1, days=2)
@pytest.mark.tensorflow
def test_the_guides_commands_print_what_it_shows(
    copy: Project, tf_python: Callable[[str], Path], tmp_path: Path
) -> None:
    tf_python("tf2.0")
    machines = {"cluster": tmp_path / "cluster", "home": copy.root}
    shutil.copytree(copy.root, machines["cluster"])
    for path in [*copy.evidence.glob("*/*.jsonl"), *machines["cluster"].glob("matrix/evidence/*/*.jsonl")]:
        path.unlink()
    for machine, text in BLOCK.findall(GUIDE):
        if machine == "home":  # the user has copied the records from the cluster
            shutil.copy(machines["cluster"] / "records.jsonl", copy.root)
        script = "set -e\n" + "\n".join(row.removeprefix("$ ") for row in text.splitlines())
        prelude = f'tfdet() {{ "{sys.executable}" -m tfdet "$@"; }}\n'
        done = subprocess.run(
            ["bash", "-c", prelude + script], cwd=machines[machine], capture_output=True, text=True, timeout=300,
            env={**os.environ, "TFDET_ROOT": str(machines[machine]), "XDG_CONFIG_HOME": str(tmp_path / "config")},
        )  # fmt: skip
        assert done.returncode == 0, (text, done.stderr)
    (added_file,) = copy.evidence.glob("*/*.jsonl")
    # none is the control, TDO the solution TF_DETERMINISTIC_OPS=1.
    assert {(r.source, r.solution) for r in read_records(added_file)} == {("reduce-sum", "none"), ("reduce-sum", "TDO")}


def test_the_guides_tables_list_the_options_and_defaults() -> None:
    documented = dict(re.findall(r"^\| `--([a-z-]+) ?([^`]*)`", GUIDE, re.M))
    assert set(documented) == {"gpu", "container-runtime", "sbatch-option", "build-environments", "max-parallel",
                               "task-minutes", "memory", "poll-interval", "prove"}  # fmt: skip
    defaults = command.run.__defaults__
    assert (
        defaults is not None and float(documented["task-minutes"]) in defaults and int(documented["memory"]) in defaults
    )
    assert f"asks for {tasks.SUITE_OVERHEAD_MEBIBYTES // 1024} GiB more" in GUIDE
