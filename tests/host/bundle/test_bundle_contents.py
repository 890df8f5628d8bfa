"""What a bundle contains, what it leaves out, and what is rejected before any download."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tfdet.base.errors import UsageError
from tfdet.base.paths import Project
from tfdet.bundle import build, stub
from tfdet.bundle.build import parse_capability, parse_size
from tfdet.bundle.contents import Entry, TrimOptions, site_contents
from tfdet.engines.locks import restrict_to
from tfdet.matrix.load import load_matrix
from tfdet.matrix.plan import make_plan


def test_a_stub_is_a_library_that_defines_nothing(tmp_path: Path) -> None:
    path = tmp_path / "libcufft.so.11"
    path.write_bytes(stub.shared_library("libcufft.so.11"))
    library = ctypes.CDLL(str(path))
    with pytest.raises(AttributeError, match="undefined symbol: cufftExecC2C"):
        _ = library.cufftExecC2C
    # The loader knows it by its soname: asked for by name alone, it is the one that is loaded already.
    assert ctypes.CDLL("libcufft.so.11")._handle == library._handle


def test_a_stub_module_says_what_is_missing() -> None:
    names: dict[str, Any] = {}
    exec(stub.python_module("_pywrap_profiler_plugin"), names)
    with pytest.raises(RuntimeError, match="_pywrap_profiler_plugin is left out of this bundle"):
        names["__getattr__"]("trace")
    with pytest.raises(AttributeError):
        names["__getattr__"]("__path__")


# {file of site-packages that a bundle leaves out: the reason that is listed}
LEFT_OUT = {
    "tensorflow/include/a.h": "headers and static libraries",
    "tensorflow/lib.a": "headers and static libraries",
    "numpy/core/tests/test_a.py": "tests of packages",
    "bin/tool": "installers' files",
    "a.dist-info/RECORD": "installers' files",
    "clang/native/libclang.so": "libclang",
    "nvidia/nccl/lib/libnccl.so.2": "NCCL",
    "nvidia/cusolver/lib/libcusolverMg.so.11": "cuSOLVER for several GPUs",
}
KEPT = [
    "tensorflow/__init__.py", "numpy/testing/__init__.py", "a.dist-info/METADATA",
    "nvidia/cusolver/lib/libcusolver.so.11",
    "nvidia/cublas/lib/libcublas.so.12", "nvidia/cublas/lib/libcublasLt.so.12", "nvidia/cudnn/lib/libcudnn_adv.so.9",
    "nvidia/cuda_cupti/lib/libcupti.so.12", "nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc",
    "nvidia/nvjitlink/lib/libnvJitLink.so.12", "nvidia/cusparse/lib/libcusparse.so.12",
]  # fmt: skip
PLUGIN = "tensorflow/python/profiler/internal/_pywrap_profiler_plugin.so"


@pytest.fixture
def site_packages(tmp_path: Path) -> Path:
    """Return a folder of installed packages with the files of LEFT_OUT, KEPT and PLUGIN."""
    for name in [*LEFT_OUT, *KEPT, PLUGIN]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def paths(entries: list[Entry]) -> set[str]:
    return {entry.path.removeprefix("site/") for entry in entries}


def test_left_out_files_are_listed(site_packages: Path) -> None:
    contents = site_contents(site_packages, TrimOptions())
    assert paths(contents.entries) == {*KEPT, PLUGIN.replace(".so", ".py")}
    assert set(contents.left_out) == set(LEFT_OUT.values())
    assert (contents.stubbed, contents.from_host, contents.trimmed) == (["_pywrap_profiler_plugin"], [], [])


def test_stubbed_libraries_and_libraries_of_the_host(site_packages: Path) -> None:
    contents = site_contents(site_packages, TrimOptions(None, ("cusolver", "cusparse", "cudnn-adv"), ("cublas",)))
    assert contents.from_host == ["libcublas.so.12", "libcublasLt.so.12"]
    assert set(contents.stubbed) == {
        "_pywrap_profiler_plugin", "libcusolver.so.11", "libcusparse.so.12", "cudnn-adv"
    }  # fmt: skip
    assert "nvJitLink" in contents.left_out, "only the two libraries that are stubs need it"
    by_path = {entry.path: entry for entry in contents.entries}
    assert by_path["site/nvidia/cusolver/lib/libcusolver.so.11"].source == stub.shared_library("libcusolver.so.11")


def test_invalid_options_are_refused() -> None:
    for choice in (("cudart",), ()), (("cufft",), ("cufft",)), ((), ("nccl",)):
        with pytest.raises(UsageError):
            TrimOptions(None, *choice)
    assert parse_size("60MiB") == 60 << 20
    assert parse_size("1000") == 1000
    assert parse_capability("12.0") == (12, 0)
    for text in ("", "MiB", "-1", "60 pounds"):
        with pytest.raises(UsageError):
            parse_size(text)
    for text in ("9", "sm_90", "nine"):
        with pytest.raises(UsageError):
            parse_capability(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tf2.99"], "no environment is called 'tf2.99'"),
        (["ngc19.06-py3"], "is an image, not built from packages"),
        (["tf1.14", "--device", "cpu", "--stub-libraries", "cufft"], "holds no GPU code"),
        (["tf2.21", "--python", "3"], "--python 3"),
        (["tf2.21", "--part-size", "10"], "less than 1 MiB"),
        (["tf2.21", "--compute-capability", "sm_90"], "'sm_90' is not a compute capability"),
        (["tf2.21", "--use-host-libraries", "cublast"], "cublas"),
    ],
)
def test_wrong_usage_is_reported_before_any_download(
    checkout: Project, tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tfdet", "bundle", *arguments, "--out", str(tmp_path / "out")],
        env={**os.environ, "TFDET_ROOT": str(checkout.root), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_with_other_files_is_not_written_into(checkout: Project, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    done = subprocess.run(
        [sys.executable, "-m", "tfdet", "bundle", "tf1.14", "--device", "cpu", "--out", str(tmp_path)],
        env={**os.environ, "TFDET_ROOT": str(checkout.root)}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2
    assert "contains other files (thesis.tex)" in done.stderr


def test_confirmed_sources_and_their_solutions_are_planned_first(checkout: Project) -> None:
    matrix = load_matrix(checkout.matrix)
    cells = [c for c in make_plan(matrix, "tf2.21", by_priority=True)["cells"] if c["device"] == "gpu"]
    order = [(c["source"], c["solution"]) for c in sorted(cells, key=lambda c: c["rank"])]
    confirmed = [s for s in matrix.sources if matrix.sources[s].group == "gpu-confirmed"]
    confirmed.sort(key=lambda s: matrix.sources[s].order)
    # TEOD is enable_op_determinism(), which documents claim to be a solution of each of them.
    assert order[: 2 * len(confirmed)] == [(s, key) for s in confirmed for key in ("none", "TEOD")]
    assert order[2 * len(confirmed)] == ("block-lstm-grad", "none")
    assert all("rank" not in c for c in make_plan(matrix, "tf2.21")["cells"])


def test_a_bundle_contains_the_whole_runtime(checkout: Project) -> None:
    """enable_determinism() reads known.json, the ops that stay nondeterministic, so a bundle must contain it."""
    spec = build.BundleSpec("tf2.21")
    carried = {entry.path for entry in build._tool_entries(checkout, load_matrix(checkout.matrix), spec)}
    assert "runtime/tfdeterminism/known.json" in carried
    assert "runtime/tfdeterminism/pytorch/known.json" in carried
    assert "runtime/tfdet_probe/__main__.py" in carried


@pytest.mark.parametrize("option", [{"capability": (9, 0)}, {"stubs": ("cufft",)}, {"host_libraries": ("cublas",)}])
def test_host_packages_exclude_options_about_libraries(option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="--host-packages cannot be combined"):
        TrimOptions(host_packages=True, **option)


def test_packages_of_the_host_are_listed_and_not_bundled(checkout: Project) -> None:
    environment = load_matrix(checkout.matrix).environment("torch2.11")
    spec = build.BundleSpec("torch2.11", trim=TrimOptions(host_packages=True))
    named = build._locked_host_packages(checkout, environment, spec)
    assert named[0] == "torch==2.11.0"
    assert any(requirement.startswith("numpy==") for requirement in named)
    carried = restrict_to(checkout.lock("torch2.11", "gpu").read_text("utf-8"), build._suite_requirements(environment))
    assert not set(re.findall(r"^([\w.-]+==[\w.]+)", carried, re.M)) & set(named)
    assert "expecttest==" in carried
