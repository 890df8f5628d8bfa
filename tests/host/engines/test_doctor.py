"""The checks of `tfdet doctor`, on simulated hosts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest
from typer.testing import CliRunner

from tfdet.base.errors import TfdetError
from tfdet.base.paths import Project
from tfdet.cli.main import app
from tfdet.engines import doctor
from tfdet.engines.gpus import DriverInfo, Gpu, read_driver_info
from tfdet.matrix.load import load_matrix
from tfdet.matrix.models import Environment

V100, H200 = Gpu("V100", (7, 0), 16384), Gpu("H200", (9, 0), 143771)


@pytest.fixture
def tf20(checkout: Project) -> Environment:
    """Return environment tf2.0, with a minimum driver."""
    return load_matrix(checkout.matrix).environment("tf2.0").model_copy(update={"min_driver": "410.48"})


@pytest.mark.parametrize(
    ("driver", "least", "state"),
    [
        ("410.48", "410.48", "ok"),
        ("580.95.05", "450.80.02 (TF page) / 460.27.03 (toolkit)", "ok"),
        ("384.81", "410.48", "missing"),
        ("99.1", "410.48", "missing"),
        ("580.1", "unknown", "warn"),
    ],
)
def test_an_old_driver_is_a_finding(tf20: Environment, driver: str, least: str, state: str) -> None:
    check = doctor.check_driver(tf20.model_copy(update={"min_driver": least}), DriverInfo(driver, (V100,)))
    assert check.state == state


def test_a_missing_driver_is_a_finding(tf20: Environment) -> None:
    assert doctor.check_driver(tf20, None).state == "missing"
    assert doctor.check_gpus(None).state == "missing"


class FakeNvml:
    """Answers like libnvidia-ml.so.1: returns a status, and writes the value to the pointer."""

    def __init__(self, gpu: Gpu, **otherwise: int | None) -> None:
        """otherwise: {function: the status that it returns}; None: an older library, which lacks the function."""
        self._gpu, self._otherwise = gpu, otherwise

    def __getattr__(self, name: str) -> Callable[..., int]:
        status = self._otherwise.get(name, 0)
        if status is None:
            raise AttributeError(name)
        return lambda *arguments: status or self._answer(name, *arguments)

    def _answer(self, name: str, *arguments: Any) -> int:
        if name in ("nvmlSystemGetDriverVersion", "nvmlDeviceGetName"):
            arguments[-2].value = {"D": self._gpu.name.encode(), "S": b"580.95.05"}[name[4]]
        if name == "nvmlDeviceGetCount_v2":
            arguments[0]._obj.value = 2
        if name == "nvmlDeviceGetCudaComputeCapability":
            arguments[1]._obj.value, arguments[2]._obj.value = self._gpu.capability
        if name == "nvmlDeviceGetMemoryInfo":
            arguments[1]._obj.total = self._gpu.mebibytes << 20
        return 0


def use_library(monkeypatch: pytest.MonkeyPatch, library: FakeNvml) -> None:
    """Make nvidia-ml-py load this library."""
    monkeypatch.setattr(pynvml, "nvmlLib", library)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})


def test_gpus_and_driver_are_read_by_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    use_library(monkeypatch, FakeNvml(H200))
    assert read_driver_info() == DriverInfo("580.95.05", (H200, H200))


@pytest.mark.parametrize(
    ("question", "status"),
    [("nvmlInitWithFlags", 9), ("nvmlDeviceGetCount_v2", 999), ("nvmlDeviceGetCudaComputeCapability", None)],
)
def test_errors_of_nvml_are_findings(monkeypatch: pytest.MonkeyPatch, question: str, status: int | None) -> None:
    use_library(monkeypatch, FakeNvml(H200, **{question: status}))
    assert read_driver_info() is None


@pytest.mark.parametrize(
    ("code", "gpu", "state"),
    [
        ("sm_60, sm_70", V100, "ok"),
        ("sm_50, sm_75, compute_80 (PTX)", H200, "warn"),
        ("sm_50, sm_75", H200, "missing"),
        ("sm_75, compute_80 (PTX)", V100, "missing"),
        ("unknown", V100, "warn"),
    ],
)
def test_a_gpu_needs_code_of_its_architecture(tf20: Environment, code: str, gpu: Gpu, state: str) -> None:
    environment = tf20.model_copy(update={"cuda_arch": code})
    assert doctor.check_architecture(environment, DriverInfo("580.1", (gpu,))).state == state


def test_missing_compilers_of_a_source_package_are_named(checkout: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = load_matrix(checkout.matrix).environment("tf2.0-horovod").pip
    assert pip is not None and pip.compiled is not None
    pip = pip.model_copy(update={"compiled": pip.compiled.model_copy(update={"tools": ["sh"]})})
    assert pip.compiled is not None
    check = doctor.check_build_tools(pip.compiled)
    assert check.state == "ok" and "HOROVOD_WITH_GLOO=1" in check.detail
    monkeypatch.setenv("PATH", "")
    check = doctor.check_build_tools(pip.compiled)
    assert (check.state, check.detail) == ("missing", "no sh")


def test_a_command_that_breaks_a_build_is_warned_of(
    checkout: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pip = load_matrix(checkout.matrix).environment("torch2.0-horovod").pip
    assert pip is not None and pip.compiled is not None
    compiled = pip.compiled.model_copy(update={"tools": []})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.check_build_tools(compiled).state == "ok"
    nvcc = tmp_path / "nvcc"
    nvcc.touch(0o755)
    check = doctor.check_build_tools(compiled)
    assert (check.state, check.detail) == ("warn", str(nvcc))
    assert "PyTorch's CUDA 11.7" in check.advice


def test_docker_that_is_not_there_is_a_finding_not_an_error() -> None:
    check = doctor.check_docker(TfdetError("Docker is not installed", "Install it."))
    assert (check.state, check.detail, check.advice) == ("missing", "Docker is not installed", "Install it.")
    assert doctor.check_container_toolkit({"Runtimes": {"nvidia": {}}}).state == "ok"
    assert doctor.check_container_toolkit({"DiscoveredDevices": [{"ID": "nvidia.com/gpu=0"}]}).state == "ok"


MISSING, THERE = doctor.Check("one", "missing", ""), doctor.Check("other", "ok", "")


@pytest.mark.parametrize(
    ("docker", "venv", "missing"),
    [
        ([THERE], [THERE], 0),
        ([MISSING], [THERE], 0),
        ([THERE, THERE], [THERE, MISSING], 0),
        ([MISSING], [MISSING], 2),
        ([MISSING], [], 1),  # an image only
        ([THERE], [], 0),
    ],
)
def test_one_engine_is_enough(docker: list[doctor.Check], venv: list[doctor.Check], missing: int) -> None:
    checks = [check for engine in doctor.relax_engine_checks(docker, venv) for check in engine]
    assert [check.state for check in checks].count("missing") == missing


@pytest.mark.parametrize("as_json", [[], ["--json"]])
@pytest.mark.parametrize(
    ("arguments", "driver", "code"),
    [
        ([], None, 0),
        (["tf2.0"], None, 4),
        (["tf2.0"], "99.1", 4),
        (["tf2.0"], "580.95.05", 0),
        (["tf2.0", "--device", "cpu"], None, 0),
        (["ngc24.05-tf2", "--device", "cpu"], None, 4),
    ],
)
def test_a_missing_requirement_sets_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], driver: str | None, code: int, as_json: list[str]
) -> None:
    """A simulated host without Docker, with every Python."""
    monkeypatch.setattr(doctor, "read_driver_info", lambda: DriverInfo(driver, (V100,)) if driver else None)
    monkeypatch.setattr(doctor, "docker_info", lambda: TfdetError("no Docker", "Install it."))
    monkeypatch.setattr(doctor, "find_python", lambda minor: Path("python"))
    assert CliRunner().invoke(app, ["doctor", *arguments, *as_json]).exit_code == code


def test_a_full_disk_is_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1 << 30}))
    assert doctor.check_disk("disk", tmp_path / "not" / "there").state == "warn"


def test_a_missing_old_python_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_python", lambda minor: None)
    assert doctor.check_python("3.7").state == "missing"
    assert doctor.check_python("3.12").state == "ok"


def test_examine_checks_every_requirement_of_an_environment(checkout: Project) -> None:
    checks = doctor.run_checks(checkout, load_matrix(checkout.matrix), "tf2.0")
    assert {"Docker", "GPU", "driver", "GPU code", "uv", "CPython 3.7"} <= {check.name for check in checks}
    assert all(check.advice for check in checks if check.state == "missing")


@pytest.mark.parametrize("nvidia", [None, DriverInfo("580.1", ())])
def test_unknown_requirements_give_no_advice(tf20: Environment, nvidia: DriverInfo | None) -> None:
    unknown = tf20.model_copy(update={"cuda_arch": "unknown", "min_driver": "unknown"})
    assert doctor.check_architecture(unknown, nvidia).advice == ""
    assert doctor.check_architecture(tf20.model_copy(update={"cuda_arch": "sm_70"}), nvidia).advice.endswith(": sm_70.")
    assert doctor.check_driver(unknown, None).advice == ""


def test_architectures_are_taken_from_the_audit(checkout: Project) -> None:
    """The audit supplies the architectures where no document does: PyTorch and most of TensorFlow."""
    matrix = load_matrix(checkout.matrix)
    for key in ("torch2.8", "tf2.4"):
        environment = matrix.environment(key).model_copy(update={"cuda_arch": "unknown"})
        known = doctor.fill_architectures(checkout, key, environment)
        sass, _ = doctor.architectures(known.cuda_arch)
        assert (7, 0) in sass and doctor.check_architecture(known, DriverInfo("580.1", (V100,))).state == "ok"
    documented = matrix.environment("tf2.4").model_copy(update={"cuda_arch": "sm_35"})
    assert doctor.fill_architectures(checkout, "tf2.4", documented) is documented
