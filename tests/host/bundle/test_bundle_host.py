"""How unbundle.py checks a simulated host: CPU, driver, disk space, and the host's own libraries."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bundle_builders import make_bundle


def start_error(script: Any, bundle: Path, device: str = "gpu") -> tuple[int, str, str]:
    """Return the (code, cause, advice) that a run on this host ends with; (0, "", "") if it would begin.

    script: unbundle.py as a module; the fixture gpu_host gives it a simulated host that can run a bundle.
    """
    try:
        script.require(script.checks(script.Bundle(str(bundle)), device))
    except script.BundleError as stop:
        return stop.code, stop.cause, stop.advice
    return 0, "", ""


def test_a_suitable_host_has_no_error(gpu_host: Any, tmp_path: Path) -> None:
    assert start_error(gpu_host, make_bundle(tmp_path)) == (0, "", "")


@pytest.mark.parametrize(
    ("name", "value", "code", "cause"),
    [
        ("platform.machine", lambda: "aarch64", 3, "CPU: aarch64, the bundle is for x86_64"),
        ("cpu_flags", lambda: ["sse2"], 3, "CPU: no AVX"),
        ("os.confstr", lambda name: "glibc 2.12", 3, "glibc: 2.12 is too old, the packages need 2.17"),
        ("find_python", lambda version: None, 3, "the bundle is for CPython"),
        ("read_text", lambda path: "MemAvailable:   524288 kB\n", 3, "memory: 0.5 GiB free, a run needs 4.0"),
        ("query_gpus", lambda: None, 4, "driver: no working NVIDIA driver"),
    ],
)
def test_a_missing_requirement_of_the_host_is_reported(
    gpu_host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object, code: int, cause: str
) -> None:
    owner, _, attribute = name.rpartition(".")
    monkeypatch.setattr(getattr(gpu_host, owner) if owner else gpu_host, attribute, value)
    error = start_error(gpu_host, make_bundle(tmp_path))
    assert error[0] == code
    assert cause in error[1]
    assert error[2]


@pytest.mark.parametrize(
    ("driver", "gpus", "cause"),
    [
        ("470.42", [("H200", (9, 0), 1)], "driver: 470.42 is too old"),
        ("99.1", [("H200", (9, 0), 1)], "driver: 99.1 is too old"),
        ("580.1", [], "GPU: no GPU is visible"),
        ("580.1", [("V100", (7, 0), 16384)], "V100 (7.0, 16 GiB); the bundle holds code for 9.0 only"),
        ("580.1", [("B200", (10, 0), 16384)], "B200 (10.0, 16 GiB); the bundle holds code for 9.0 only"),
    ],
)
def test_an_unsuitable_driver_or_gpu_is_reported(
    gpu_host: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    driver: str,
    gpus: list[tuple[str, tuple[int, int], int]],
    cause: str,
) -> None:
    detected = [gpu_host.Gpu(*gpu) for gpu in gpus]
    monkeypatch.setattr(gpu_host, "query_gpus", lambda: gpu_host.Nvidia(driver, detected))
    error = start_error(gpu_host, make_bundle(tmp_path))
    assert (error[0], cause in error[1]) == (4, True), error


SMI = """#!/bin/sh
case "$1" in
    {refused}) echo "Field \\"compute_cap\\" is not a valid field to query."; exit 2;;
    *compute_cap*) echo "580.95.05, NVIDIA H200, 143771, 9.0"; echo "580.95.05, NVIDIA L4, [N/A], 8.9";;
    *) echo "450.80.02, Tesla V100-SXM2-16GB, 16160";;
esac
"""


@pytest.mark.parametrize(
    ("refused", "driver", "gpus"),
    [
        ("nothing", "580.95.05", [("NVIDIA H200", (9, 0), 143771), ("NVIDIA L4", (8, 9), 0)]),
        ("*compute_cap*", "450.80.02", [("Tesla V100-SXM2-16GB", None, 16160)]),
    ],
)
def test_the_output_of_nvidia_smi_is_parsed(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str, driver: str, gpus: list[Any]
) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text(SMI.format(refused=refused))
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert script.query_gpus() == (driver, [script.Gpu(*gpu) for gpu in gpus])


def test_without_nvidia_smi_there_is_no_driver(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert script.query_gpus() is None


def test_a_gpu_of_unknown_compute_capability_is_accepted(
    gpu_host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_host, "query_gpus", lambda: gpu_host.Nvidia("580.1", [gpu_host.Gpu("V100", None, 16384)]))
    assert start_error(gpu_host, make_bundle(tmp_path)) == (0, "", "")


def test_a_bundle_for_the_cpu_is_refused_for_a_gpu(gpu_host: Any, tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path, device="cpu", compute_capability=None)
    assert start_error(gpu_host, bundle)[0] == 4
    assert start_error(gpu_host, bundle, "cpu")[0] == 0


def test_too_little_disk_is_reported_before_anything_is_written(
    gpu_host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = make_bundle(tmp_path)
    monkeypatch.setattr(gpu_host.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1 << 20}))
    with pytest.raises(gpu_host.BundleError) as caught:
        gpu_host.unpack(gpu_host.Bundle(str(bundle)), str(tmp_path / "into"))
    assert caught.value.code == 3
    assert "GiB free, the unpacked bundle needs" in caught.value.cause


def test_a_disk_that_fills_up_leaves_nothing_half_unpacked(
    gpu_host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: str, first: int, content: memoryview, room: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    monkeypatch.setattr(gpu_host, "write_piece", full)
    into = tmp_path / "into"
    with pytest.raises(gpu_host.BundleError) as caught:
        gpu_host.unpack(gpu_host.Bundle(str(make_bundle(tmp_path))), str(into))
    assert (caught.value.code, "no space left" in caught.value.cause) == (3, True)
    assert not list(tmp_path.glob("into*/"))


def test_libraries_of_the_host_are_linked_by_version(
    gpu_host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exact name is preferred; another major version is linked under TensorFlow's name, with a message."""
    required = ["libcublas.so.12", "libcudnn.so.9", "libcudnn_adv.so.9"]
    bundle = gpu_host.Bundle(str(make_bundle(tmp_path, host_libraries=required)))
    folder = tmp_path / "cuda"
    folder.mkdir()
    monkeypatch.setattr(gpu_host, "library_folders", lambda bundle: [str(folder)])
    check = gpu_host.check_host_libraries(bundle)
    assert (check.code, check.detail) == (4, "libcublas.so.12, libcudnn.so.9 not found on this host")
    (folder / "libcublas.so.13.1.0").touch()
    (folder / "libcublas.so.13").symlink_to("libcublas.so.13.1.0")
    (folder / "libcudnn.so.9").touch()
    assert gpu_host.check_host_libraries(bundle).state == "ok"
    with gpu_host.host_links(bundle, "gpu") as (folders, messages):
        assert messages == ["libcublas.so.12: libcublas.so.13.1.0", "libcudnn.so.9: libcudnn.so.9"]
        assert Path(folders[0], "libcublas.so.12").resolve() == (folder / "libcublas.so.13.1.0").resolve()
        assert folders[1:] == [str(folder)]
    assert not Path(folders[0]).exists()


def test_versions_of_the_hosts_packages_are_checked(
    gpu_host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The framework's version must match the environment; records state other versions that do not match."""
    required = ["torch==2.11.0", "numpy==2.5.5", "sympy==1.14.0"]
    bundle = gpu_host.Bundle(str(make_bundle(tmp_path, host_packages=required)))
    installed = {"torch": "2.10.0+cu130", "numpy": "2.5.2"}
    monkeypatch.setattr(gpu_host, "host_packages", lambda bundle: installed)
    check = gpu_host.check_host_packages(bundle)
    assert (check.code, check.detail) == (3, "torch 2.10.0+cu130 here, the environment has 2.11.0")
    installed["torch"] = "2.11.0+cu130"
    assert gpu_host.check_host_packages(bundle).state == "ok"
    assert gpu_host.packages_summary(installed) == ["numpy 2.5.2", "torch 2.11.0+cu130"]
    installed.clear()
    assert gpu_host.check_host_packages(bundle).detail == "torch is not here, the environment has 2.11.0"


def test_installed_packages_of_the_host_are_listed(gpu_host: Any, tmp_path: Path) -> None:
    bundle = gpu_host.Bundle(str(make_bundle(tmp_path, host_packages=["pytest==1.0", "no-such-package==1.0"])))
    assert gpu_host.host_packages(bundle) == {"pytest": pytest.__version__}


@pytest.mark.parametrize("start", ["START", "OWN_SITE"])
def test_folders_of_the_working_directory_are_not_importable(script: Any, tmp_path: Path, start: str) -> None:
    """TensorFlow checks whether `jax` is importable; the working folder must not provide it."""
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime" / "tfdet_probe.py").write_text("import importlib.util as u; print(u.find_spec('a_folder'))\n")
    (tmp_path / "here" / "a_folder").mkdir(parents=True)
    code = {"START": script.LAUNCHER_CODE.format(""), "OWN_SITE": script.BUNDLE_SITE_CODE}[start]
    done = subprocess.run(
        [sys.executable, "-s", "-c", code, "site"], cwd=tmp_path / "here", capture_output=True, text=True,
        env={"PYTHONPATH": str(tmp_path / "runtime")}, check=False,
    )  # fmt: skip
    assert done.stdout == "None\n", done.stderr


def test_options_for_a_shared_gpu_are_parsed_by_the_probe(script: Any) -> None:
    """The probe's own parser accepts the options that unbundle.py passes."""
    from tfdet_probe.__main__ import _parse

    for extra_options, contention in (([], None), (["--no-contention"], False)):
        options = script.parse(["run", "--device", "gpu", *extra_options])
        assert _parse(script.probe_arguments(options, started=0.0)).contention is contention
