"""Apptainer and enroot, replaced by scripts that record what a container would see: mounts and their paths."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fleets import bare_project, environ

from tfdet.base.errors import RunFailedError
from tfdet.engines.base import Request, Selection
from tfdet.engines.run import engine_for
from tfdet.matrix.load import load_matrix
from tfdet.matrix.plan import write_plan
from tfdet.store.records import read_records

FAKE_COMMAND = """#!{python}
import os, sys
words, places, told = sys.argv[1:], {{}}, {{}}
while words[0] != {image!r}:
    word = words.pop(0)
    if word in ("--bind", "--mount"):
        source, _, place = words.pop(0).partition(":")
        places[place] = source
    elif word == "--env":
        name, _, value = words.pop(0).partition("=")
        told[name] = value
    else:
        open({log!r}, "a").write(word + " ")
there = [places.get(word, word) for word in words[1:]]
assert there.pop(0) == "/opt/tfdet/python"
suite = next(source for place, source in places.items() if place.startswith("/opt/tfdet/tests/suite/"))
told.update(PYTHONPATH=places["/opt/tfdet/runtime"], TFDET_SUITE=suite, TFDET_FRAMEWORKS=os.environ["TFDET_FRAMEWORKS"])
os.execve(sys.executable, [sys.executable, *there], told)
"""


@pytest.mark.parametrize(("name", "suffix", "words"), [
    ("apptainer", "sif", "exec --containall --cleanenv --no-home"), ("enroot", "sqsh", "start"),
])  # fmt: skip
def test_the_suite_runs_with_the_mounts_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, suffix: str, words: str
) -> None:
    project = bare_project(tmp_path / "p", sources=1, cases=2)
    matrix = load_matrix(project.matrix)
    request = Request(
        key="bare1.0", environment=matrix.environment("bare1.0"), kind=matrix.devices.find_by_cli_name("cpu"),
        plan=write_plan(matrix, "bare1.0", tmp_path / "plan.json"), journal=tmp_path / "records.jsonl",
        selection=Selection(device="cpu", repeats=2, processes=1),
    )  # fmt: skip
    monkeypatch.setenv("TFDET_IMAGES", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("TFDET_FRAMEWORKS", environ(project)["TFDET_FRAMEWORKS"])
    engine = engine_for(project, request.environment, name)
    with pytest.raises(RunFailedError, match=f"{name} is not installed on this machine"):
        engine.run(request)
    image, command = tmp_path / f"bare1.0.{suffix}", tmp_path / name
    command.write_text(FAKE_COMMAND.format(python=sys.executable, image=str(image), log=str(tmp_path / "log")))
    command.chmod(0o755)
    with pytest.raises(RunFailedError, match=f"{suffix} not found"):
        engine.run(request)
    image.touch()
    assert engine.run(request) == 0
    records = list(read_records(request.journal))
    assert len(records) == 4  # two cases, each without a solution and with the only one of bare_project
    assert {(r.stack.engine, r.stack.image) for r in records} == {(name, image.name)}
    assert (tmp_path / "log").read_text().strip() == words
