"""Every command with every kind of bad path:

a documented exit code, the path's name, no traceback, no hang. bad_paths.py makes the paths and calls the commands.
TFDET_FUZZ: what takes long, too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import typer
from bad_paths import KINDS, NAME, NAMELESS
from library_builders import ELF, cubin, element, fatbin, library
from site_builder import small_project
from synthetic import write_trace

from tfdet.base.errors import EXIT_CODES, ExitCode
from tfdet.base.paths import Project
from tfdet.cli.main import app
from tfdet_probe import __main__ as probe_program
from tfdeterminism.trace import __main__ as trace_program
from tfdeterminism.trace import command_line

# Parameters that are text, but no path: names, patterns, numbers, addresses.
NOT_A_PATH = {"env", "environment", "framework", "verdict", "source", "solution", "case", "arch", "url", "repository",
         "compute_capability", "python_version", "part_size", "use_host_libraries", "stub_libraries", "base_image",
         "schedule", "sample", "signer", "device", "gpu", "sbatch_option", "registry", "volume_claim", "queue",
         "cluster", "engine", "container_runtime", "print_manifests", "assume_solution"}  # fmt: skip
NOT_PATHS = {("bundle", "python")}  # elsewhere `python` is a path; here it is a version

PYTHON = sys.executable
# {(command, parameter): arguments in which that parameter is the bad path, PATH}; prepare() makes TRACE-A and the like
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
TRACE, PROBE = ["-m", "tfdeterminism.trace"], ["-m", "tfdet_probe", "--device", "cpu"]
# The same of the programs that run in environments: (name of the program, destination of the argument) in argparse.
RUNTIME_CALLS: dict[tuple[str, str], list[str]] = {
    ("trace run", "out"): [*TRACE, "run", "--out", "PATH", "--", "PROGRAM"],
    ("trace run", "program"): [*TRACE, "run", "--out", "trace", "--", "PATH"],
    ("trace run", "values"): [*TRACE, "run", "--out", "trace", "--record-values", "PATH", "--", "PROGRAM"],
    ("trace diff", "trace"): [*TRACE, "diff", "--json", "PATH", "TRACE-A"],
    ("trace locate", "keep_traces"): [*TRACE, "locate", "--keep-traces", "PATH", "--max-runs", "2", "--", "PROGRAM"],
    ("trace locate", "program"): [*TRACE, "locate", "--max-runs", "2", "--", "PATH"],
    ("trace replay", "file"): [*TRACE, "replay", "PATH"],
    ("tfdet_probe", "plan"): [*PROBE, "--plan", "PATH", "--suite", ".", "--out", "records.jsonl"],
    ("tfdet_probe", "suite"): [*PROBE, "--plan", "PLAN", "--suite", "PATH", "--out", "records.jsonl"],
    ("tfdet_probe", "out"): [*PROBE, "--plan", "PLAN", "--suite", ".", "--out", "PATH"],
}  # fmt: skip
# And what the environment names.
VARIABLES: dict[tuple[str, str], list[str]] = {
    ("key new", "TFDET_KEY"): ["key", "new"],
    ("key show", "TFDET_KEY"): ["key", "show"],
    ("evidence sign", "TFDET_KEY"): ["evidence", "sign", "RECORDS"],
    ("envs", "TFDET_ROOT"): ["envs"],
    ("audit", "XDG_CACHE_HOME"): ["audit", "--json", "WHEEL"],
    ("tfdet_probe", "TFDET_PLAN"): [*PROBE, "--suite", ".", "--out", "records.jsonl"],
    ("tfdet_probe", "TFDET_SUITE"): [*PROBE, "--plan", "PLAN", "--out", "records.jsonl"],
}
# Variables that hold no path, or are set by tfdet itself for its own children.
OTHER_VARIABLES = {
    *("TFDET_ENGINE", "TFDET_IMAGE", "TFDET_IMAGE_DIGEST", "TFDET_MACHINE", "TFDET_BUNDLE", "TFDET_RANK"),
    *(
        "TFDET_SUBMITTER_GPUS",
        "TFDET_INTERPOSE",
        "TFDET_PARENT_RANK",
        "TFDET_POSITION",
        "TFDET_STARTED_AT",
        "TFDET_TRACE",
    ),
    *("TFDET_TRACE_BACKENDS", "TFDET_TRACE_STOP_AFTER", "TFDET_VGPU", "TFDET_RELEASE"),
    "TFDET_FRAMEWORKS",  # folders of Python packages: an import path
    "TFDET_IMAGES",  # of an engine that needs containers: tests/e2e
}
# Words there, too; importlib: the folder of the pytest that calls the probe.
RUNTIME_NOT_A_PATH = {"arguments", "device", "source", "solution", "case", "schedule", "capture", "importlib"}
# Calls that start Python again: with these kinds of path only, unless TFDET_FUZZ is set.
SLOW_CALLS = {
    ("locate", "words"): ["fifo"],
    ("trace locate", "program"): ["fifo"],
    ("trace locate", "keep_traces"): ["fifo"],
}
BESIDE = ("evidence add", "evidence sign", "status")  # read what lies beside the file, too
ALLOWED_CODES = set(EXIT_CODES) - {ExitCode.INTERRUPTED, ExitCode.TERMINATED}


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


def test_every_parameter_that_may_be_a_path_has_a_call() -> None:
    """A new parameter must be added to CALLS, or to NOT_A_PATH if it is none; a `Path` is one whatever its name."""
    path_parameters = {
        (name, parameter): "Path" in annotation
        for name, parameter, annotation in parameters()
        if "Path" in annotation or "str" in annotation.replace("Literal", "")
    }
    missing = {
        (name, parameter)
        for (name, parameter), is_path in path_parameters.items()
        if (name, parameter) not in CALLS and (is_path or parameter not in NOT_A_PATH)
    }
    assert missing == NOT_PATHS
    assert CALLS.keys() - path_parameters.keys() == {("locate", "traces")}  # a flag: its trace files are in `words`


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the parsers of the programs that run in environments, as these build them."""
    caught: list[argparse.ArgumentParser] = []

    def catch(parser: argparse.ArgumentParser, *arguments: object, **options: object) -> argparse.Namespace:
        caught.append(parser)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", catch)
        builders = [(f"trace {name}", getattr(command_line, name)) for name in sorted(trace_program._COMMANDS)]
        for name, build in [*builders, ("tfdet_probe", probe_program._parse)]:
            with contextlib.suppress(KeyboardInterrupt):
                build([])
            yield name, caught.pop()


def test_every_runtime_argument_that_may_be_a_path_has_a_call() -> None:
    """An argument without a type and without choices is text: it must be in RUNTIME_CALLS, or in RUNTIME_NOT_A_PATH."""
    texts = {
        (name, action.dest)
        for name, parser in parsers()
        for action in parser._actions
        if action.type is None and action.choices is None and action.nargs != 0
    }
    assert len(texts) > len(RUNTIME_CALLS)
    assert {key for key in texts if key not in RUNTIME_CALLS and key[1] not in RUNTIME_NOT_A_PATH} == set()
    assert RUNTIME_CALLS.keys() - texts == set()


def test_every_variable_that_may_be_a_path_has_a_call(checkout: Project) -> None:
    """A variable that the code names must be in VARIABLES, or in OTHER_VARIABLES if it is not a user's path."""
    found = {
        match
        for folder in (checkout.root / "src", checkout.runtime)
        for path in folder.rglob("*.py")
        for match in re.findall(r"""["'](TFDET_[A-Z_]+)["']""", path.read_text("utf-8"))
    }
    assert "TFDET_KEY" in found
    assert found == OTHER_VARIABLES | {name for _, name in VARIABLES if name.startswith("TFDET_")}


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
    plan = {"schema": 2, "environment": "planted", "framework": "bare", "determinism_variables": [],
            "solutions": [{"key": "none", "env": {}, "call": None, "seed": False, "threads": None}],
            "cells": [{"device": "cpu", "source": "same", "solution": "none", "expect": None}]}  # fmt: skip
    (folder / "plan.json").write_text(json.dumps(plan), "utf-8")
    (folder / "program.py").write_text("x = 1\n", "utf-8")
    return project, {"RECORDS": str(good), "TRACE-A": str(folder / "a.tfdt"), "TRACE-B": str(folder / "b.tfdt"),
                     "WHEEL": str(wheel), "PLAN": str(folder / "plan.json"),
                     "PROGRAM": str(folder / "program.py")}  # fmt: skip


def cases(sound: dict[str, str]) -> Iterator[tuple[str, list[str], str, dict[str, str]]]:
    """Yield all cases in the long form, else every eighth: three kinds for each call, three calls for each kind."""
    key, step = {"TFDET_KEY": sound["KEY"]}, 1 if "TFDET_FUZZ" in os.environ else 8
    for number, ((command, name), words) in enumerate([*CALLS.items(), *RUNTIME_CALLS.items(), *VARIABLES.items()]):
        arguments = [sound.get(word, word) for word in words]
        environ = {name: "PATH"} if (command, name) in VARIABLES else {}
        kinds = [kind for kind in KINDS if not kind.startswith("envelopes") or command in BESIDE]
        chosen_kinds = SLOW_CALLS.get((command, name), kinds[number % step :: step]) if step > 1 else kinds
        for kind in chosen_kinds:
            yield f"{command} {name}", arguments, kind, {**key, **environ}


def faults(kind: str, result: dict[str, Any]) -> Iterator[str]:
    """Yield a message for each promise that the output of a call breaks."""
    text = result["out"] + result["err"]
    if result["code"] is None:
        yield "hangs"
    elif result["code"] not in ALLOWED_CODES:
        yield f"ends with {result['code']}"
    if "Traceback" in text or "defect" in text:
        yield "traceback"
    if result["code"] and NAME not in text and kind not in ("full disk", *NAMELESS):
        yield "does not name the path"
    if kind != "full disk" and "space" in result["err"].replace("namespace", ""):
        yield "speaks of space"
    # What is refused begins nothing.
    begun = [NAME, "nowhere"] if result["code"] == ExitCode.USAGE else [".part", ".old", f"{NAME}.lock"]
    rests = [name for name in result["left"] if any(word in name for word in begun)]
    if rests and result["code"]:
        yield f"leaves {rests}"
    if result["out"].startswith(("{", "[")):
        json.dumps(json.loads(result["out"]), ensure_ascii=False).encode("utf-8")  # no half of a surrogate pair


@pytest.mark.no_cover
def test_every_bad_path_is_reported(tmp_path: Path) -> None:
    project, sound = prepare(tmp_path)
    environ = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_CACHE_HOME": str(tmp_path / "cache"),
               "XDG_DATA_HOME": str(tmp_path / "data"), "TFDET_GOOD_RECORDS": sound["RECORDS"],
               "TFDET_FRAMEWORKS": str(Path(__file__).parents[2] / "meta" / "frameworks")}  # fmt: skip
    key = {**environ, "TFDET_KEY": str(tmp_path / "key.pem")}
    subprocess.run([PYTHON, "-m", "tfdet", "key", "new"], env=key, check=True, capture_output=True)
    tried = list(cases({**sound, "KEY": key["TFDET_KEY"]}))
    (tmp_path / "cases").mkdir()
    command = [PYTHON, str(Path(__file__).parents[1] / "bad_paths.py"), str(project.root), str(tmp_path / "cases")]
    done = subprocess.run(command, input=json.dumps(tried), env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    wrong = []
    for (parameter, _, kind, _), result in zip(tried, json.loads(done.stdout), strict=True):
        if "skipped" not in result:
            wrong += [f"{parameter}, {kind}: {fault}: {result['err'][-600:]}" for fault in faults(kind, result)]
    assert not wrong, f"{len(wrong)} of {len(tried)}\n" + "\n".join(wrong)
