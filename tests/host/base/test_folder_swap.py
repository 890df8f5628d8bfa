"""Replacing a folder is atomic: after a kill at any step, either the old folder or the new one exists."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfdet.base import folder_swap

# argv: FOLDER ["no exchange"]. Replaces a folder "old" by "new" in a child that is killed at one file operation after
# the other; prints [killed, files then, content of site.json then, files after a retry] for each.
DRIVER = """
import json, os, shutil, signal, sys
from pathlib import Path
from tfdet.base import folder_swap

out = Path(sys.argv[1]) / "site"
if len(sys.argv) > 2:
    folder_swap._exchange = lambda one, other: False

def made(text):
    with folder_swap.replace_folder(out) as part:
        (part / "pages").mkdir()
        (part / "site.json").write_text(text)
        (part / "pages" / text).write_text(text)

def killed_at(step):
    done = 0
    def look(event, arguments):
        nonlocal done
        known = event in ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree", "ctypes.dlopen")
        if known and (event == "ctypes.dlopen" or str(out.parent) in str(arguments[0])):
            done += 1
            if done == step:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(look)
    made("new")

for step in range(1, 1000):
    shutil.rmtree(out.parent, ignore_errors=True)
    made("old")
    if (child := os.fork()) == 0:
        killed_at(step)
        os._exit(0)
    killed = os.waitpid(child, 0)[1] == signal.SIGKILL
    there = sorted(path.name for path in out.rglob("*") if path.is_file()) if out.exists() else []
    first = (out / "site.json").read_text() if there else ""
    made("new")
    again = sorted(str(path.relative_to(out.parent)) for path in out.parent.rglob("*"))
    print(json.dumps([killed, there, first, again]))
    if not killed:
        break
"""


@pytest.mark.parametrize("how", [[], ["no exchange"]])
def test_a_kill_at_any_step_leaves_a_site(tmp_path: Path, how: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, tmp_path / "public", *how], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(steps) > 8 and [killed for killed, *_ in steps] == [True] * (len(steps) - 1) + [False]
    complete_states = (["old", "site.json"], ["new", "site.json"], ["new", "old", "site.json"] if how else [])
    for _, entries, first, after_retry in steps:
        assert entries in complete_states and first in ("old", "new")
        assert after_retry == ["site", "site/pages", "site/pages/new", "site/site.json"], "nothing of the dead is left"


def test_a_folder_that_another_process_is_making_stays(tmp_path: Path) -> None:
    with folder_swap.replace_folder(tmp_path / "site") as part:
        own, other = part, tmp_path / ".site.4711.old"
        other.mkdir()
        child = subprocess.run(
            [sys.executable, "-c", "import sys; from pathlib import Path; from tfdet.base import folder_swap\n"
             "with folder_swap.replace_folder(Path(sys.argv[1])) as part: (part / 'x').touch()", tmp_path / "site"],
            timeout=60,
        )  # fmt: skip
        assert child.returncode == 0
        assert (own.is_dir(), other.exists()) == (True, False)
    assert os.listdir(tmp_path) == ["site"]
