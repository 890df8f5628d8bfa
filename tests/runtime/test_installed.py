"""tfdet installed from its wheels: an environment with nothing else, an empty working folder, an empty home."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
import weekly
from uv import find_uv_bin
from wheels import build

from tfdet.base.paths import Project, cache_dir
from tfdet.matrix.load import load_matrix


@dataclass(frozen=True)
class Installed:
    """The installed command `tfdet`: a call runs it in an empty folder with an empty home."""

    bin: Path
    home: Path

    def __call__(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        working_folder = self.home.parent / "empty"
        working_folder.mkdir(exist_ok=True)
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), **environ}
        return subprocess.run(
            [self.bin / "tfdet", *arguments], cwd=working_folder, env=environ, capture_output=True, text=True
        )


@pytest.fixture(scope="session")
def venv(checkout: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install both wheels and their dependencies, in the versions of requirements.txt."""
    home = tmp_path_factory.mktemp("installed")
    tfdet, library = (build(folder, home / folder.name) for folder in (checkout.root, checkout.runtime))
    wheels = [f"tfdet[audit] @ {tfdet.as_uri()}", str(library)]
    uv, python = find_uv_bin(), str(home / "venv" / "bin" / "python")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, home / "venv"], check=True)
    pins = ["--constraints", str(checkout.root / "requirements.txt")]
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *pins, *wheels], check=True)
    return home / "venv"


@pytest.fixture
def installed_tfdet(venv: Path, tmp_path: Path) -> Iterator[Installed]:
    """Yield the installed tfdet; afterwards check that its package folder is unchanged."""
    (data,) = venv.glob("lib/*/site-packages/tfdet/data")
    home = tmp_path / "home"
    home.mkdir()
    before = file_states(data)
    yield Installed(venv / "bin", home)
    assert file_states(data) == before


def file_states(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return {file: (size, modification time)}."""
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def test_the_environments_are_those_of_the_matrix(installed_tfdet: Installed, checkout: Project) -> None:
    done = installed_tfdet("envs", "--json")
    assert {entry["id"] for entry in json.loads(done.stdout)} == set(load_matrix(checkout.matrix).environments)


def test_a_recipe_names_the_package_to_install(installed_tfdet: Installed) -> None:
    done = installed_tfdet("recipe", "tf2.0")
    assert (done.returncode, done.stderr) == (0, "")
    assert "tfdeterminism.enable_determinism(seed=1)" in done.stdout
    assert "pip install tfdeterminism==" in done.stdout and "scripts/" not in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [("status", "--environment", "tf2.0", "--json"), ("show", "tf2.0", "bias-add-backprop"), ("doctor", "tf2.0")],
)
def test_the_output_is_that_of_a_checkout_and_only_the_cache_is_written(
    installed_tfdet: Installed, checkout: Project, arguments: tuple[str, ...]
) -> None:
    done, in_checkout = installed_tfdet(*arguments), installed_tfdet(*arguments, TFDET_ROOT=str(checkout.root))
    # Other processes fill the disk meanwhile.
    printed, expected = (re.sub(r"\d+ GiB free", "N GiB free", completed.stdout) for completed in (done, in_checkout))
    assert printed and (printed, done.returncode) == (expected, in_checkout.returncode)
    cells = installed_tfdet.home / ".cache" / "tfdet" / "cells"
    assert [
        path for path in installed_tfdet.home.rglob("*") if path.parent != cells and path not in (cells, *cells.parents)
    ] == []


@pytest.mark.parametrize("arguments", [("status", "--write"), ("status", "--check"), ("audit", "tf2.0", "--write")])
def test_commands_that_need_a_checkout_are_refused_with_advice(
    installed_tfdet: Installed, arguments: tuple[str, ...]
) -> None:
    done = installed_tfdet(*arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "requires a checkout" in done.stderr and "TFDET_ROOT=" in done.stderr


def test_environments_get_the_runtime_and_nothing_else(
    venv: Path, installed_tfdet: Installed, checkout: Project
) -> None:
    """Environments must not import from site-packages, which has this host's NumPy."""
    ask = "from tfdet.base.paths import find_project; print(find_project().runtime)"
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(installed_tfdet.home)}
    done = subprocess.run(
        [venv / "bin" / "python", "-c", ask],
        cwd=installed_tfdet.home,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    installed_runtime = Path(done.stdout.strip())
    expected = [*checkout.runtime.glob("*/**/*.py"), *checkout.runtime.glob("*/**/*.json")]
    content = {path.relative_to(checkout.runtime): path.read_bytes() for path in expected}
    assert {
        path.relative_to(installed_runtime): path.read_bytes()
        for path in installed_runtime.rglob("*")
        if path.is_file()
    } == content
    assert installed_tfdet.home in installed_runtime.parents


NAME = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
name = ctypes.create_string_buffer(100)
print(cuda.cuInit(0), cuda.cuDeviceGetName(name, 100, 0), name.value.decode())
maps = {line.split()[-1] for line in open("/proc/self/maps") if "libvgpu" in line}
print(*maps)
"""


def virtual_gpu(installed_tfdet: Installed, **environ: str) -> Path:
    """Return the folder of the library that a program on the virtual GPU loads."""
    done = installed_tfdet("vgpu", "--", str(installed_tfdet.bin / "python"), "-c", NAME, **environ)
    assert done.returncode == 0, done.stdout + done.stderr
    message, folder = done.stdout.splitlines()
    assert message == "0 0 tfdet virtual GPU (CPU emulation)"
    return Path(folder)


@contextmanager
def with_distribution(venv: Path, name: str, *arguments: str | Path) -> Iterator[None]:
    """Install one more distribution while the block runs; arguments: for pip, by default its name."""
    uv, python = [find_uv_bin(), "pip"], ["--quiet", "--python", str(venv / "bin" / "python")]
    subprocess.run([*uv, "install", *python, *(arguments or [name])], check=True)
    try:
        yield
    finally:
        subprocess.run([*uv, "uninstall", *python, name], check=True)


def test_the_virtual_gpu_is_built_from_the_packaged_sources(
    venv: Path, installed_tfdet: Installed, checkout: Project
) -> None:
    """It is built in the user's cache; this test uses the shared cache to save time."""
    with with_distribution(venv, "ziglang", f"ziglang=={metadata.version('ziglang')}"):
        folder = virtual_gpu(installed_tfdet, XDG_CACHE_HOME=str(cache_dir().parent), VGPU_COMPILER="zig")
    built = subprocess.check_output([sys.executable, checkout.vgpu / "build.py", "--portable"], text=True).strip()
    assert folder.parent == Path(built)


def test_without_a_compiler_the_compiled_wheel_is_used(
    venv: Path, installed_tfdet: Installed, checkout: Project, tmp_path: Path
) -> None:
    bare = {"PATH": str(tmp_path)}
    refused = installed_tfdet("vgpu", "--", str(venv / "bin" / "python"), "-c", NAME, **bare)
    assert refused.returncode == 3 and "pip install tfdet-vgpu" in refused.stderr, refused.stderr

    with with_distribution(venv, "tfdet-vgpu", "--no-index", build(checkout.vgpu, tmp_path / "dist")):
        folder = virtual_gpu(installed_tfdet, **bare)
        assert folder.parent.name == "lib" and folder.parent.parent.name == "tfdet_vgpu"
        assert os.access(folder.parent / "ptxas", os.X_OK)


@weekly.on_day(0)  # one day of six
@pytest.mark.tensorflow
def test_records_are_stored_in_the_users_data_folder(
    installed_tfdet: Installed, tf_python: Callable[[str], Path]
) -> None:
    tf_python("tf2.21")
    environ = {"XDG_CACHE_HOME": str(cache_dir().parent), "PATH": os.environ["PATH"]}
    run = ["run", "tf2.21", "--device", "cpu", "--source", "bias-add-backprop", "--solution", "none"]
    done = installed_tfdet(*run, **environ)
    assert done.returncode == 0, done.stdout + done.stderr
    (journal,) = installed_tfdet.home.rglob("*.jsonl")
    assert journal == installed_tfdet.home / ".local" / "share" / "tfdet" / "evidence" / "cpu" / "tf2.21.jsonl"
    assert {json.loads(line)["source"] for line in journal.read_text("ascii").splitlines()} == {"bias-add-backprop"}
    assert (
        stored_runs(installed_tfdet)
        > stored_runs(installed_tfdet, XDG_DATA_HOME=str(installed_tfdet.home / "other"))
        > 0
    )

    done = installed_tfdet(*run, "--out", "records.jsonl", **environ)
    assert done.returncode == 0, done.stdout + done.stderr
    added = installed_tfdet(
        "evidence", "add", "--yes", "records.jsonl", XDG_DATA_HOME=str(installed_tfdet.home / "other")
    )
    assert added.returncode == 0, added.stderr
    assert (installed_tfdet.home / "other" / "tfdet" / "evidence" / "cpu" / "tf2.21.jsonl").is_file()


def stored_runs(installed_tfdet: Installed, **environ: str) -> int:
    """Return the number of runs behind the verdict of that cell."""
    cells = json.loads(installed_tfdet("status", "--environment", "tf2.21", "--json", **environ).stdout)["cells"]
    selection = {"device": "cpu", "source": "bias-add-backprop", "solution": "none"}
    (cell,) = (cell for cell in cells if selection.items() <= cell.items())
    return int(cell["runs"])
