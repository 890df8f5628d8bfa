"""The cache folder of builds of the virtual GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

from virtual_device import builder

# A fake compiler that logs the source, and takes some time.
COMPILER = """#!{python}
import pathlib, sys, time
words = sys.argv[1:]
if "-c" in words:
    with open({log!r}, "a") as log:
        log.write(words[words.index("-c") + 1] + "\\n")
    time.sleep(0.05)
pathlib.Path(words[words.index("-o") + 1]).touch()
"""


def test_two_concurrent_builds_compile_each_source_once(tmp_path):
    compiler, log, folder = tmp_path / "c++", tmp_path / "log", tmp_path / "folder"
    compiler.write_text(COMPILER.format(python=sys.executable, log=str(log)))
    compiler.chmod(0o755)
    command = [sys.executable, Path(builder.__file__), folder]
    # SHIMS: libraries under the names of NVIDIA's, which load libvgpu.so.  VGPU_COMPILER=zig would replace CXX.
    environ = {**os.environ, "CXX": str(compiler), "VGPU_COMPILER": ""}
    builds = [subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = (Path(build.communicate(timeout=120)[0].strip()) for build in builds)
    compiled = log.read_text().split()
    assert len(compiled) == len(set(compiled)) > 50
    assert first == second and set(builder.SHIMS) < {path.name for path in first.iterdir()}
    assert {path.name for path in folder.iterdir()} == {"lock", "objects", first.name}


def test_only_leftovers_of_killed_builds_are_removed(tmp_path):
    objects = tmp_path / "objects"
    # A build writes to names that hold its process id (77), and renames what is complete.
    unfinished = [tmp_path / "0123.77.part", objects / "float-0123.77"]
    finished = [tmp_path / "0123", objects / "float-0123.o"]
    for folder in (objects, unfinished[0], finished[0]):
        folder.mkdir()
    for path in (unfinished[1], finished[1]):
        path.touch()
    with builder.lock_folder(tmp_path):
        assert sorted(tmp_path.rglob("*")) == sorted([objects, *finished, tmp_path / "lock"])


def test_compile_commands_name_each_source(tmp_path, monkeypatch):
    sources = tmp_path / "src"
    (sources / "core").mkdir(parents=True)
    (sources / "soname_shims").mkdir()
    for name in ("core/a.cpp", "core/a.h", "soname_shims/other.cpp"):
        (sources / name).touch()
    monkeypatch.setattr(builder, "SOURCES", sources)
    commands = json.loads(builder.write_compile_commands().read_text("utf-8"))
    assert [command["file"] for command in commands] == [str(sources / "core/a.cpp")]
    assert commands[0]["arguments"][-4:] == ["-iquote", str(sources), "-c", str(sources / "core/a.cpp")]
    assert "-std=c++17" in commands[0]["arguments"]
