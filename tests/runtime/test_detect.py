"""How builds of TensorFlow are recognized, and messages where there is none or patch() does not support it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfdet.base.paths import Project
from tfdeterminism import detect, remaining

RELEASE = "v2.0.0-rc2-26-g64c3d38"


@pytest.mark.parametrize(
    ("text", "git", "environ", "beside", "version", "kind", "doubt"),
    [
        ("1.13.1", b"v1.13.1-0-g6612da8", {}, ["tensorflow-1.13.1.dist-info"], (1, 13), "stock", None),
        ("2.0.0", RELEASE, {}, ["tensorflow_gpu-2.0.0.dist-info"], (2, 0), "stock", None),
        ("2.21.0", RELEASE, {}, ["tensorflow_cpu-2.21.0.dist-info"], (2, 21), "stock", None),
        ("2.22.0", RELEASE, {}, [], (2, 22), "stock", "newer"),
        ("1.12.3", RELEASE, {}, [], (1, 12), "stock", "older"),
        (
            "2.22.0-dev20261101",
            RELEASE,
            {},
            ["tf_nightly-2.22.0.dev20261101.dist-info"],
            (2, 22),
            "stock",
            "tf_nightly",
        ),
        ("2.0.0-rc1", RELEASE, {}, [], (2, 0), "stock", "not a release"),
        ("2.4.0", "unknown", {}, [], (2, 4), "stock", "commit"),
        ("2.4.0", RELEASE, {}, ["intel_tensorflow-2.4.0.dist-info"], (2, 4), "stock", "intel_tensorflow"),
        ("2.4.0", RELEASE, {}, ["tensorflow_rocm-2.4.0.dist-info"], (2, 4), "stock", "tensorflow_rocm"),
        ("mine", RELEASE, {}, [], (2, 21), "stock", "not a number"),
        ("1.13.1", "unknown", {"NVIDIA_TENSORFLOW_VERSION": "19.06"}, [], (1, 13), "ngc", None),
        ("2.17.0", "unknown", {"NVIDIA_PRODUCT_NAME": "TensorFlow"}, [], (2, 17), "ngc", None),
        ("1.15.5+nv22.12", "unknown", {}, [], (1, 15), "ngc", None),
        ("1.15.5", "unknown", {}, ["nvidia_tensorflow-1.15.5+nv22.12.dist-info"], (1, 15), "ngc", None),
    ],
)
def test_a_build_is_reported(
    text: str,
    git: str | bytes,
    environ: dict[str, str],
    beside: list[str],
    version: tuple[int, int],
    kind: str,
    doubt: str | None,
) -> None:
    """beside: what lies beside the package; doubt: words of the reason why the build is not recognized, or None."""
    build = detect.describe(text, git, environ, beside)
    assert (build.text, build.version, build.kind) == (text, version, kind)
    assert build.image == environ.get("NVIDIA_TENSORFLOW_VERSION")
    assert bool(build.unrecognized_reasons) == (doubt is not None)
    assert doubt is None or doubt in " ".join(build.unrecognized_reasons)


def write_fake_tensorflow(folder: Path, version: str) -> None:
    """Write a package tensorflow that has only a version."""
    (folder / "tensorflow").mkdir()
    (folder / "tensorflow" / "__init__.py").write_text(
        f"class version: GIT_VERSION = 'v1'\n__version__ = {version!r}\n", "utf-8"
    )


def run_python(checkout: Project, tmp_path: Path, code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python whose path has only the folder and the runtime."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join([str(checkout.runtime), str(tmp_path)]), **environ},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("call", ["patch()", "enable_determinism()", "enable_determinism(1)", "set_seeds(1)"])
def test_without_tensorflow_there_is_advice(checkout: Project, tmp_path: Path, call: str) -> None:
    done = run_python(checkout, tmp_path, f"import tfdeterminism as t; t.disable(); print(t.__version__); t.{call}")
    assert done.stdout.strip() == (checkout.runtime / "tfdeterminism" / "version.py").read_text().split('"')[-2]
    assert done.stderr.strip().splitlines()[-1].startswith("ImportError: TensorFlow is not installed here")
    assert "pip install tensorflow" in done.stderr


def test_the_error_of_a_broken_tensorflow_is_shown(checkout: Project, tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("import numpy_that_is_not_there\n", "utf-8")
    done = run_python(checkout, tmp_path, "import tfdeterminism; tfdeterminism.enable_determinism()")
    assert "numpy_that_is_not_there" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("version", ["1.12.0", "1.13.1", "2.1.0", "2.2.0", "2.11.1", "2.21.0", "2.22.0", "3.0.0"])
def test_patch_is_refused_in_other_versions(checkout: Project, tmp_path: Path, version: str) -> None:
    write_fake_tensorflow(tmp_path, version)
    done = run_python(checkout, tmp_path, "import os, tfdeterminism as t\ntry: t.patch()\nfinally: print(os.environ)")
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"TypeError: No patch available for version {version} of TensorFlow")
    assert "enable_determinism()" in last
    assert "TF_CUDNN_DETERMINISTIC" not in done.stdout


@pytest.mark.parametrize("version", ["1.13.1", "1.14.0", "1.15.2", "2.0.0"])
def test_patch_is_refused_in_an_ngc_image(checkout: Project, tmp_path: Path, version: str) -> None:
    write_fake_tensorflow(tmp_path, version)
    done = run_python(
        checkout, tmp_path, "import tfdeterminism; tfdeterminism.patch()", NVIDIA_TENSORFLOW_VERSION="19.06"
    )
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("TypeError")
    assert "TF_DETERMINISTIC_OPS=1" in last


def test_each_version_of_the_matrix_finds_its_list_of_remaining_sources() -> None:
    content = remaining.load()
    # {"ngc 19.06 tf1": the key of its list}
    for name, first in content["places"].items():
        kind, version, *major = name.split(" ")
        environ = {"NVIDIA_TENSORFLOW_VERSION": version} if kind == "ngc" else {}
        text = f"{version}.0" if kind == "stock" else f"{major[0][-1]}.99.0"
        remaining_ops = remaining.remaining_of(detect.describe(text, RELEASE, environ, []), patched_sources=())
        assert [entry.source for entry in remaining_ops] == [entry["source"] for entry in content["lists"][first]], name


def test_a_source_covered_by_a_patch_does_not_remain_unless_measured() -> None:
    build = detect.describe("2.0.0", RELEASE, {}, [])
    everything = remaining.remaining_of(build, patched_sources=())
    documented = [entry.source for entry in everything if not entry.measured]
    assert "segment-sum" in documented
    remaining_ops = remaining.remaining_of(build, patched_sources=[entry.source for entry in everything])
    assert [entry.source for entry in remaining_ops] == [entry.source for entry in everything if entry.measured]


def test_a_version_that_the_matrix_lacks_takes_the_nearest_list() -> None:
    sources = {
        text: [entry.source for entry in remaining.remaining_of(detect.describe(text, RELEASE, {}, []), ())]
        for text in ("1.12.0", "1.13.1", "2.21.0", "2.99.0")
    }
    assert sources["1.12.0"] == sources["1.13.1"]
    assert sources["2.99.0"] == sources["2.21.0"] != sources["1.13.1"]
