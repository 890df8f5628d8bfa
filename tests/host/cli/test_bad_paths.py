"""Every command with every kind of bad path: an exit code that is documented, the path's name, no traceback, no hang.

TFDET_FUZZ: what takes long, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import typer
from bad_paths import KINDS, NAME
from library_builders import ELF, cubin, element, fatbin, library
from site_builder import small_project
from synthetic import write_trace

from tfdet.base.paths import Project
from tfdet.cli.main import app

# Words that are no paths: names, patterns, numbers, addresses.
WORDS = {"env", "environment", "framework", "verdict", "source", "solution", "case", "arch", "url", "repository",
         "compute_capability", "python_version", "part_size", "use_host_libraries", "stub_libraries", "base_image",
         "schedule", "sample", "signer", "device", "gpu", "sbatch_option", "registry", "volume_claim", "queue",
         "cluster", "engine", "container_runtime", "print_manifests", "assume_solution"}  # fmt: skip
NOT_PATHS = {("bundle", "python")}  # a version there

PYTHON = sys.executable
# What else each command takes; PATH stands for the bad one.  None: as it is called without that parameter.
CALLS: dict[tuple[str, str], list[str]] = {
    ("run", "out"): ["run", "tf2.0", "--device", "cpu", "--out", "PATH"],
    ("status", "records"): ["status", "--json", "--records", "PATH"],
    ("reproduce", "out"): ["reproduce", "tf2.0", "--seed", "1", "--out", "PATH"],
    ("audit", "targets"): ["audit", "--json", "PATH"],
    ("audit", "compare"): ["audit", "--compare", "PATH", "PATH"],
    ("audit", "baseline"): ["audit", "tf2.0", "--baseline", "PATH"],
    ("locate", "words"): ["locate", "--python", PYTHON, "--", "PATH"],
    ("locate", "python"): ["locate", "--python", "PATH", "--", "-c", "0"],
    ("locate", "html"): ["locate", "--traces", "--html", "PATH", "TRACE-A", "TRACE-B"],
    ("locate", "traces"): ["locate", "--json", "--traces", "PATH", "TRACE-A"],
    ("bundle", "out"): ["bundle", "tf2.21", "--device", "cpu", "--out", "PATH"],
    ("vgpu", "words"): ["vgpu", "--", "PATH"],
    ("prove", "words"): ["prove", "--", "PATH"],
    ("site", "out"): ["site", "--out", "PATH"],
    ("check", "program"): ["check", "--sarif", "PATH"],
    ("check", "python"): ["check", "--python", "PATH"],
    ("evidence add", "files"): ["evidence", "add", "PATH"],
    ("evidence sign", "files"): ["evidence", "sign", "PATH"],
    ("fleet run", "folder"): ["fleet", "run", "tf2.0", "--device", "cpu", "--cluster", "local", "--folder", "PATH"],
    ("fleet run", "out"): ["fleet", "run", "tf2.0", "--device", "cpu", "--cluster", "local", "--folder", "fleet",
                           "--out", "PATH"],
    ("fleet status", "folder"): ["fleet", "status", "PATH"],
    ("fleet cancel", "folder"): ["fleet", "cancel", "PATH"],
}  # fmt: skip
# And what the environment names.
VARIABLES: dict[tuple[str, str], list[str]] = {
    ("key new", "TFDET_KEY"): ["key", "new"],
    ("key show", "TFDET_KEY"): ["key", "show"],
    ("evidence sign", "TFDET_KEY"): ["evidence", "sign", "RECORDS"],
    ("envs", "TFDET_ROOT"): ["envs"],
    ("audit", "XDG_CACHE_HOME"): ["audit", "--json", "WHEEL"],
}
SLOW = {("locate", "words"): ["fifo"]}  # starts Pythons
BESIDE = ("evidence add", "evidence sign", "status")  # read what lies beside the file, too
CODES = {0, 1, 2, 3, 4}


def parameters() -> Iterator[tuple[str, str, str]]:
    """Yield (command, parameter, its annotation) of all commands, from the functions that typer calls."""

    def below(group: typer.Typer, name: str) -> Iterator[tuple[str, str, str]]:
        for command in group.registered_commands:
            assert command.callback is not None
            key = f"{name} {command.name or command.callback.__name__}".strip()
            for parameter, annotation in get_type_hints(
                command.callback, vars(sys.modules[command.callback.__module__])
            ).items():
                yield key, parameter, str(annotation)
        for inner in group.registered_groups:
            assert inner.typer_instance is not None
            yield from below(inner.typer_instance, f"{name} {inner.name}".strip())

    return below(app, "")


def test_every_parameter_that_may_be_a_path_is_called() -> None:
    """A new parameter must be added to CALLS, or to WORDS if it is not a path."""
    path_parameters = {
        (name, parameter)
        for name, parameter, annotation in parameters()
        if "Path" in annotation or "str" in annotation.replace("Literal", "")
    }
    missing = {
        (name, parameter)
        for name, parameter in path_parameters
        if (name, parameter) not in CALLS and parameter not in WORDS
    }
    assert missing == NOT_PATHS
    assert set(CALLS) - path_parameters == {("locate", "traces")}  # which says what its words are


def prepare(folder: Path) -> tuple[Project, dict[str, str]]:
    """Create a project with few records and valid files, so that only the tested path of a call is bad."""
    project = small_project(folder / "project")
    for path in (project.matrix / "evidence").glob("*/*.jsonl"):
        path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:12]), "utf-8")
    good = folder / "good.jsonl"
    good.write_bytes((project.matrix / "evidence" / "cpu" / "tf2.0.jsonl").read_bytes())
    for name in ("a", "b"):
        write_trace(str(folder / f"{name}.tfdt"), steps=2, ops=3)
    wheel = folder / "none-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("none/lib.so", library(fatbin(element(ELF, 70, cubin(70)))))
    return project, {"RECORDS": str(good), "TRACE-A": str(folder / "a.tfdt"), "TRACE-B": str(folder / "b.tfdt"),
                     "WHEEL": str(wheel)}  # fmt: skip


def cases(sound: dict[str, str]) -> Iterator[tuple[str, list[str], str, dict[str, str]]]:
    """Yield all cases in the long form, else every eighth: three kinds for each call, three calls for each kind."""
    key, step = {"TFDET_KEY": sound["KEY"]}, 1 if "TFDET_FUZZ" in os.environ else 8
    for number, ((command, name), words) in enumerate([*CALLS.items(), *VARIABLES.items()]):
        arguments = [sound.get(word, word) for word in words]
        environ = {name: "PATH"} if (command, name) in VARIABLES else {}
        kinds = [kind for kind in KINDS if not kind.startswith("envelopes") or command in BESIDE]
        chosen_kinds = SLOW.get((command, name), kinds[number % step :: step]) if step > 1 else kinds
        for kind in chosen_kinds:
            yield f"{command} {name}", arguments, kind, {**key, **environ}


def faults(kind: str, result: dict[str, Any]) -> Iterator[str]:
    """Yield a message for each promise that the output of a call breaks."""
    text = result["out"] + result["err"]
    if result["code"] is None:
        yield "hangs"
    elif result["code"] not in CODES:
        yield f"ends with {result['code']}"
    if "Traceback" in text or "defect" in text:
        yield "traceback"
    if result["code"] and NAME not in text and kind != "full disk":
        yield "does not name the path"
    if kind != "full disk" and "space" in result["err"].replace("namespace", ""):
        yield "speaks of space"
    rests = [name for name in result["left"] if any(word in name for word in (".part", ".old", "thing.lock"))]
    if rests and result["code"]:
        yield f"leaves {rests}"
    if result["out"].startswith(("{", "[")):
        json.dumps(json.loads(result["out"]), ensure_ascii=False).encode("utf-8")  # no half of a surrogate pair


@pytest.mark.no_cover
def test_no_path_is_too_bad_to_be_told_of(tmp_path: Path) -> None:
    project, sound = prepare(tmp_path)
    environ = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_CACHE_HOME": str(tmp_path / "cache"),
               "XDG_DATA_HOME": str(tmp_path / "data"), "TFDET_GOOD_RECORDS": sound["RECORDS"]}  # fmt: skip
    key = {**environ, "TFDET_KEY": str(tmp_path / "key.pem")}
    subprocess.run([PYTHON, "-m", "tfdet", "key", "new"], env=key, check=True, capture_output=True)
    tried = list(cases({**sound, "KEY": key["TFDET_KEY"]}))
    (tmp_path / "things").mkdir()
    command = [PYTHON, str(Path(__file__).parents[1] / "bad_paths.py"), str(project.root), str(tmp_path / "things")]
    done = subprocess.run(command, input=json.dumps(tried), env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    wrong = []
    for (parameter, _, kind, _), result in zip(tried, json.loads(done.stdout), strict=True):
        if "skipped" not in result:
            wrong += [f"{parameter}, {kind}: {fault}: {result['err'][-600:]}" for fault in faults(kind, result)]
    assert not wrong, f"{len(wrong)} of {len(tried)}\n" + "\n".join(wrong)
