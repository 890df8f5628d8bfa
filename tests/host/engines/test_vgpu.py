"""The virtual GPU as a user calls it: any program, what it requires, and no effect on other programs.

It emulates a GPU on the CPU, by a libcuda.so.1 of its own.  A schedule is the order in which it executes blocks, warps
and lanes; NAME@LAUNCH:FIRST-LAST limits it to some decisions of one launch.  A CPU fallback computes a call of a vendor
library, such as cuBLAS, on the CPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfdet.base.errors import ExitCode, UsageError
from tfdet.base.paths import Project
from tfdet.engines import doctor, vgpu
from tfdet.engines.locks import check_lock, framework_of, without_nvidia
from tfdet.matrix.load import load_matrix
from tfdet_common import virtual_gpu
from tfdet_probe.devices import DeviceChoices
from tfdet_probe.devices.cpu import Cpu
from tfdet_probe.devices.vgpu import Vgpu, _schedule

NAME_OF_THE_DEVICE = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
name = ctypes.create_string_buffer(100)
print(cuda.cuInit(0), cuda.cuDeviceGetName(name, 100, 0), name.value.decode())
"""


def run_tfdet(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m tfdet`."""
    return subprocess.run([sys.executable, "-m", "tfdet", *arguments], capture_output=True, text=True, timeout=600)


def test_a_program_finds_the_virtual_gpu() -> None:
    done = run_tfdet("vgpu", "--schedule", "random:7", "--", sys.executable, "-c", NAME_OF_THE_DEVICE)
    assert (done.returncode, done.stdout) == (0, "0 0 tfdet virtual GPU (CPU emulation)\n"), done.stderr


def test_a_program_that_never_used_it_is_reported() -> None:
    """A message says that its results are not those of a GPU."""
    done = run_tfdet("vgpu", "--", sys.executable, "-c", "print(1)")
    assert (done.returncode, done.stdout) == (ExitCode.NO_DEVICE, "1\n")
    assert "never used the virtual GPU" in done.stderr


def test_a_programs_exit_code_is_handed_on() -> None:
    assert run_tfdet("vgpu", "--", sys.executable, "-c", "raise SystemExit(7)").returncode == 7


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--schedule", "backwards", "--", "true"], "schedule 'backwards' not found"),
        (["--", "no-such-program"], "no-such-program not found on PATH"),
    ],
)
def test_wrong_arguments_are_usage_errors(words: list[str], message: str) -> None:
    done = run_tfdet("vgpu", *words)
    assert (done.returncode, message in done.stderr) == (ExitCode.USAGE, True), done.stderr


@pytest.fixture(scope="module")
def vgpu_folder(checkout: Project) -> Path:
    """Return the folder of the built virtual GPU (libcuda.so.1 and others)."""
    return vgpu.library_folder(checkout)


@pytest.mark.parametrize("name", ["serial", "reverse", "random:0", "adversary:12", "random:7@2:0-3", "lanes@1:3-3"])
def test_schedules_that_the_device_knows(vgpu_folder: Path, name: str) -> None:
    assert vgpu.environ(vgpu_folder, name)["VGPU_SCHEDULE"] == name


@pytest.mark.parametrize("name", ["", "random", "random:-1", "random:1x", "serial:1", "RANDOM:1"])
def test_schedules_that_it_does_not_know(vgpu_folder: Path, name: str) -> None:
    with pytest.raises(UsageError):
        vgpu.environ(vgpu_folder, name)


def test_the_grammar_of_schedules(checkout: Project) -> None:
    """tests/vgpu/test_schedule.py checks the device's parser against the same table."""
    table = json.loads((checkout.root / "tests/vgpu/schedules.json").read_text("utf-8"))
    known = {schedule: virtual_gpu.is_schedule(schedule) for kind in table.values() for schedule in kind}
    assert known == {**dict.fromkeys(table["good"], True), **dict.fromkeys(table["bad"], False)}


@pytest.mark.parametrize("program", ["tfdet vgpu", "vgpu/minimize_schedule.py"])
def test_a_schedule_that_does_not_exist_is_refused_before_anything_is_compiled(
    program: str, checkout: Project, tmp_path: Path
) -> None:
    start = ["-m", "tfdet", "vgpu"] if program == "tfdet vgpu" else [str(checkout.root / program)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, *start, "--schedule", "WRONG", "--", "true"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "'WRONG'" in done.stderr) == (ExitCode.USAGE, True), done.stderr
    assert not list(tmp_path.rglob("*.o")) and not list(tmp_path.rglob("lock"))


def test_variables_that_hide_gpus_do_not_hide_the_virtual_one(vgpu_folder: Path) -> None:
    before = {"CUDA_VISIBLE_DEVICES": "", "LD_LIBRARY_PATH": "/cuda", "PATH": "/bin"}
    variables = vgpu.environ(vgpu_folder, "serial", before)
    assert variables == {
        "LD_LIBRARY_PATH": f"{vgpu_folder}:/cuda",
        "PATH": f"{vgpu_folder}:/bin",
        "VGPU_SCHEDULE": "serial",
    }
    assert before["CUDA_VISIBLE_DEVICES"] == "", "the caller's own stay"


def test_cpu_fallbacks_are_off_by_default(vgpu_folder: Path) -> None:
    before = {"LD_LIBRARY_PATH": "", "PATH": ""}
    assert "VGPU_CPU_FALLBACKS" not in vgpu.environ(vgpu_folder, "serial", before)
    assert vgpu.environ(vgpu_folder, "serial", before, cpu_fallbacks=True)["VGPU_CPU_FALLBACKS"] == "all"


def test_cpu_fallbacks_of_a_program() -> None:
    product = (
        "import ctypes; c = ctypes.CDLL('libcublas.so.10'); print(c.cublasSaxpy_v2(None, 0, (ctypes.c_float * 1)()))"
    )
    done = run_tfdet("vgpu", "--cpu-fallbacks", "--", sys.executable, "-c", product)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert "cublasSaxpy_v2 is computed by a CPU fallback: its last bits are not NVIDIA's" in done.stderr


def test_records_are_refused_with_cpu_fallbacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe removes the variable before it loads the device, whatever the shell or container sets."""
    monkeypatch.setenv("VGPU_CPU_FALLBACKS", "all")
    monkeypatch.setenv("TFDET_VGPU", str(tmp_path))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    Vgpu().initialize()
    assert "VGPU_CPU_FALLBACKS" not in os.environ


def test_device_options_of_the_caller_are_set_and_recorded(vgpu_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(vgpu_folder))
    for name in ("VGPU_CODE", "VGPU_CPU_FALLBACKS", "VGPU_MULTIPROCESSORS", "VGPU_PLACEMENT"):
        monkeypatch.setenv(name, "")
    device = Vgpu()
    device.choose(DeviceChoices(("random:4", "lanes"), True, "sass", {"multiprocessors": 108}))
    device.initialize()
    assert (os.environ["VGPU_CODE"], os.environ["VGPU_CPU_FALLBACKS"]) == ("sass", "all")
    assert os.environ["VGPU_MULTIPROCESSORS"] == "108" and "VGPU_PLACEMENT" not in os.environ
    assert [device._schedule(number) for number in range(4)] == ["serial", "random:4", "lanes", "random:4"]
    details = device.details(["lanes"], ["sass"], ["cublasSgemm_v2"])
    assert (details["chosen_code"], details["cpu_fallbacks"]) == ("sass", ["cublasSgemm_v2"])
    assert details["multiprocessors"] == 108 and "placement" not in details
    assert device.is_chosen(details) and not device.is_chosen({}) and Vgpu().is_chosen({})
    assert not device.is_chosen({**details, "multiprocessors": 80})
    with pytest.raises(ValueError, match="schedule 'random' not found"):
        device.choose(DeviceChoices(("random",), False, None, {}))
    with pytest.raises(ValueError, match="the device cpu has no schedules"):
        Cpu().choose(DeviceChoices((), False, "ptx", {}))


def test_without_a_compiler_the_error_says_what_to_install(checkout: Project, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)  # where no ziglang is
    command = [str(tmp_path / "bin" / "python"), str(checkout.vgpu / "build.py"), "--compiler"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/nowhere"})
    assert (done.returncode, "pip install ziglang" in done.stderr) == (3, True), done.stderr


def test_doctor_checks_for_a_compiler_and_not_for_a_gpu(checkout: Project) -> None:
    names = [check.name for check in doctor.run_checks(checkout, load_matrix(checkout.matrix), "tf2.0", "vgpu")]
    assert "C++ compiler for the virtual GPU" in names
    assert not {"GPU", "driver", "GPU code", "NVIDIA runtime in Docker"}.intersection(names)


@pytest.mark.parametrize(("key", "has_nvidia"), [("tf2.0", False), ("tf2.21", True)])
def test_nvidias_libraries_are_left_out_and_nothing_else(
    checkout: Project, tmp_path: Path, key: str, has_nvidia: bool
) -> None:
    complete = checkout.lock(key, "gpu").read_text("utf-8")
    bare = without_nvidia(complete)
    removed = set(complete.splitlines()) - set(bare.splitlines())
    assert bool(removed) is has_nvidia
    assert all(line.startswith(("nvidia-", "    --hash")) for line in removed)
    assert "\nnvidia-" not in bare and "\ntensorflow" in bare
    lock = tmp_path / "bare.txt"
    lock.write_text(bare, "utf-8")
    check_lock(lock, framework=framework_of(checkout, load_matrix(checkout.matrix).environment(key)))


@pytest.mark.parametrize(
    ("key", "expected"), [("torch2.0", "cu11"), ("torch2.8", "cu12"), ("torch2.15", ""), ("tf2.21", None)]
)
def test_pytorch_keeps_nvidias_run_time_compiler(checkout: Project, key: str, expected: str | None) -> None:
    framework = framework_of(checkout, load_matrix(checkout.matrix).environment(key))
    bare = without_nvidia(checkout.lock(key, "gpu").read_text("utf-8"), framework.virtual_gpu_packages)
    remaining = [line.partition("==")[0] for line in bare.splitlines() if line.startswith("nvidia-")]
    assert remaining == ([] if expected is None else [f"nvidia-cuda-nvrtc{'-' if expected else ''}{expected}"])


def test_each_run_of_a_case_has_its_own_schedule_and_always_the_same(vgpu_folder: Path) -> None:
    names = [_schedule(number) for number in range(200)]
    assert names[:5] == ["serial", "reverse", "random:2", "adversary:3", "random:4"]
    assert len(set(names)) == 200
    assert all(vgpu.environ(vgpu_folder, name) for name in names)


def test_without_a_built_library_the_probe_starts_no_second_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TFDET_VGPU", str(tmp_path))
    monkeypatch.setattr("os.execve", lambda *_: pytest.fail("begun anew"))
    Vgpu().initialize()


def test_a_process_already_on_the_virtual_gpu_needs_no_option(
    vgpu_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TFDET_VGPU", raising=False)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{vgpu_folder}:/cuda")
    monkeypatch.setattr("os.execve", lambda *_: pytest.fail("begun anew"))
    device = Vgpu()
    device.initialize()
    assert device.details(["serial"])["sources"] == (vgpu_folder / "sources").read_text().strip()
