"""`tfdet audit` from its arguments to its output: wheels, folders, libraries, and damaged ones among them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import elf_builders as make  # one_kernel(): a fatbin whose only kernel, by default CROP, adds floats atomically
import pytest

from tfdet.audit import registrations
from tfdet.base.errors import ExitCode, RunFailedError
from tfdet.base.paths import Project

VARIABLE = "TF_CUDNN_USE_AUTOTUNE"
REFUSAL = "Deterministic GPU implementation of CropAndResizeBackpropImage not available."
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(checkout: Project, tmp_path: Path) -> Run:
    """Return a function run(arguments, project=...) that calls `tfdet audit` with a cache of its own."""

    def call(*arguments: str | Path, project: Project = checkout, **env: str) -> subprocess.CompletedProcess[str]:
        return make.tfdet_audit(project, tmp_path, *arguments, **env)

    return call


@pytest.fixture
def build_files(tmp_path: Path) -> dict[str, bytes]:
    """Return the files of a small build: one library has the kernels, another has the strings."""
    gpu = make.library(tmp_path / "a.so", make.one_kernel(archs=(70, 80)))
    host = make.library(tmp_path / "b.so", None, [VARIABLE, REFUSAL, f"please unset {VARIABLE} now", "TF_XLA_FLAGS_"])
    return {"tensorflow/python/_gpu.so": gpu.read_bytes(), "tensorflow/libhost.so.2": host.read_bytes()}


def test_a_wheel_as_json(run: Run, build_files: dict[str, bytes], tmp_path: Path) -> None:
    path = make.wheel(tmp_path, build_files)
    done = run(path, "--json")
    assert done.returncode == ExitCode.OK, done.stderr
    output = json.loads(done.stdout)
    assert output["libraries"] == ["tensorflow/libhost.so.2", "tensorflow/python/_gpu.so"]
    assert output["architectures"] == {"sass": ["sm_70", "sm_80"], "ptx": []}
    assert output["environment_variables"] == [VARIABLE]
    assert output["messages"] == [REFUSAL]
    assert output["wheel"] == {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    first, second = output["kernels"]
    assert (first["arch"], second["arch"]) == ("sm_70", "sm_80")
    assert first["name"] == make.CROP
    assert "CropAndResizeBackpropImageKernel<float>" in first["demangled"]
    assert first["atomics"] == {"float_add_f32": 1}
    assert first["order_dependent"] == "yes"
    assert set(first) == {"library", "arch", "name", "demangled", "atomics", "order_dependent", "reason"}
    runs = {gpu["compute_capability"]: gpu["runs"] for gpu in output["capability"]}
    assert (runs["7.5"], runs["8.6"], runs["9.0"], runs["6.1"]) == ("native", "native", "no", "no")


def test_a_wheel_as_text(run: Run, build_files: dict[str, bytes], tmp_path: Path) -> None:
    done = run(make.wheel(tmp_path, build_files))
    assert done.returncode == ExitCode.OK, done.stderr
    assert "order-dependent float atomics in 1 kernel" in done.stdout
    assert "crop-and-resize-backprop" in done.stdout
    assert REFUSAL in done.stdout
    assert "shipped need not be reached" in done.stdout


def test_libraries_are_one_report_and_each_folder_another(run: Run, tmp_path: Path) -> None:
    library = make.library(tmp_path / "one.so", make.one_kernel())
    two = make.library(tmp_path / "two.so", make.one_kernel(make.FILL, make.INT_ADD))
    folder = tmp_path / "installed"
    make.library(folder / "deep" / "lib.so.2", make.one_kernel(make.UNKNOWN_KERNEL))
    (folder / "again.so").symlink_to(folder / "deep" / "lib.so.2")
    loose = json.loads(run(library, two, "--json").stdout)
    assert [kernel["order_dependent"] for kernel in loose["kernels"]] == ["yes", "no"]
    reports = json.loads(run(library, folder, two, "--json").stdout)
    assert [len(report["libraries"]) for report in reports] == [1, 2]
    text = run(folder).stdout
    assert "kernels of no known source" in text
    assert "tensorflow::NobodyKnowsIt" in text


def test_arch_selects_one_architecture(run: Run, tmp_path: Path) -> None:
    path = make.library(tmp_path / "one.so", make.one_kernel(archs=(70, 80)))
    output = json.loads(run(path, "--arch", "sm_80", "--json").stdout)
    assert {kernel["arch"] for kernel in output["kernels"]} == {"sm_80"}
    missing = run(path, "--arch", "sm_90")
    assert missing.returncode == ExitCode.USAGE
    assert "It contains sm_70 sm_80" in missing.stderr
    assert run(path, "--arch", "volta").returncode == ExitCode.USAGE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tf2.88"], "Did you mean tf2.8"),
        (["./onne.so"], "Did you mean one.so"),
        ([], "nothing to audit"),
        (["--compare", "tf2.0", "tf9"], "is called 'tf9'"),
        (["--compare", "tf2.0", "ngc19.06-py3"], "has no audit"),
        (["one.so", "--write"], "is not an environment"),
        (["ngc19.06-py3"], "is an image, not a wheel"),
    ],
)
def test_wrong_usage(run: Run, tmp_path: Path, arguments: list[str], message: str) -> None:
    make.library(tmp_path / "one.so", make.one_kernel())
    done = run(*arguments)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def bad_and_good_library(tmp_path: Path, bad: bytes) -> list[Path]:
    """Write a good library and a bad one; return their paths, the bad one first."""
    good = make.library(tmp_path / "good.so", make.one_kernel())
    (tmp_path / "bad.so").write_bytes(bad)
    return [tmp_path / "bad.so", good]


def bad_libraries(tmp_path: Path) -> dict[str, bytes]:
    """Return {fault: the bytes of a library that has it}."""

    def built(gpu: bytes | None, machine: int = make.X86_64) -> bytes:
        return make.library(tmp_path / "x.so", gpu, machine=machine).read_bytes()

    library_bytes = built(make.one_kernel())
    cubin = make.cubin({make.FILL: [make.INT_ADD]})
    return {
        "no elf": b"#!/bin/sh\n" * 50,
        "empty": b"",
        "truncated": library_bytes[: len(library_bytes) // 2],
        "no gpu code": built(None),
        "another machine": built(make.one_kernel(), make.AARCH64),
        "damaged fatbin": built(b"\xee" * 16 + make.one_kernel()[16:]),
        "damaged cubin": built(make.fatbin(make.element(b"\x7fELF" + bytes(200), 70))),
        "unknown compression": built(make.fatbin(make.element(cubin, 70, flags=0x40, packed=64, unpacked=4096))),
        "damaged lz4": built(make.fatbin(make.element(b"\xff" * 64, 70, flags=0x2000, packed=64, unpacked=4096))),
    }


@pytest.mark.parametrize("fault", ["no elf", "empty", "truncated", "no gpu code", "another machine", "damaged fatbin",
                                   "damaged cubin", "unknown compression", "damaged lz4"])  # fmt: skip
def test_a_bad_library_is_reported_and_the_others_are_audited(run: Run, tmp_path: Path, fault: str) -> None:
    done = run(*bad_and_good_library(tmp_path, bad_libraries(tmp_path)[fault]), "--json")
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert "Traceback" not in done.stderr
    assert "bad.so: at offset " in done.stderr
    assert "good.so" not in done.stderr.replace(f"{tmp_path}/bad.so {tmp_path}/good.so", "")
    assert [kernel["name"] for kernel in json.loads(done.stdout)["kernels"]] == [make.CROP]


def test_a_truncated_wheel_is_reported_and_the_others_are_audited(
    run: Run, build_files: dict[str, bytes], tmp_path: Path
) -> None:
    wheel = make.wheel(tmp_path, build_files)
    cut = tmp_path / "cut.whl"
    cut.write_bytes(wheel.read_bytes()[:-200])
    done = run(cut, wheel, "--json")
    assert done.returncode == ExitCode.USAGE
    assert f"{cut}: no zip archive, or cut short at offset {cut.stat().st_size}" in done.stderr
    (output,) = json.loads(done.stdout)  # two were asked for
    assert len(output["kernels"]) == 2


def test_a_damaged_member_is_reported_and_the_others_are_audited(
    run: Run, build_files: dict[str, bytes], tmp_path: Path
) -> None:
    path = make.wheel(tmp_path, {**build_files, "tensorflow/third.so": build_files["tensorflow/python/_gpu.so"]})
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo("tensorflow/third.so")
    content = bytearray(path.read_bytes())
    position = member.header_offset + 30 + len(member.filename) + member.compress_size // 2
    content[position] ^= 0xFF
    path.write_bytes(content)
    done = run(path, "--json")
    assert done.returncode == ExitCode.USAGE
    assert f"tensorflow/third.so at offset {member.header_offset}: " in done.stderr
    assert len(json.loads(done.stdout)["kernels"]) == 2
    cached = [file.name for file in (tmp_path / "cache").rglob("*.so*")]
    assert sorted(cached) == ["_gpu.so", "libhost.so.2"]


def test_a_zip_bomb_is_refused_before_it_is_unpacked(run: Run, tmp_path: Path) -> None:
    path = make.wheel(tmp_path, {"tensorflow/bomb.so": bytes(110 << 20)})
    done = run(path)
    assert done.returncode == ExitCode.USAGE
    assert "tensorflow/bomb.so at offset " in done.stderr
    assert f"unpack to {110 << 20}" in done.stderr
    assert not list((tmp_path / "cache").rglob("*.so*"))


def test_a_member_that_leads_out_of_the_wheel_is_refused(run: Run, tmp_path: Path) -> None:
    done = run(make.wheel(tmp_path, {"tensorflow/../../../evil.so": b"x"}))
    assert done.returncode == ExitCode.USAGE
    assert "leads out of the archive" in done.stderr
    assert not list(tmp_path.rglob("evil.so"))


def test_a_cpu_build_is_reported(run: Run, build_files: dict[str, bytes], tmp_path: Path) -> None:
    done = run(make.wheel(tmp_path, {"tensorflow/libhost.so.2": build_files["tensorflow/libhost.so.2"]}))
    assert done.returncode == ExitCode.USAGE
    assert "a CPU build" in done.stderr


@pytest.fixture
def tf99_project(copy: Project, build_files: dict[str, bytes], tmp_path: Path) -> Project:
    """Return a project with one more environment, tf9.9, whose wheel is in tmp_path/index."""
    path = make.wheel(tmp_path / "index", build_files)
    environment = (copy.matrix / "environments" / "tensorflow" / "tf2.21.toml").read_text("utf-8")
    environment = environment.replace('version = "2.21"', 'version = "9.9"').replace("==2.21.0", "==9.9.9")
    (copy.matrix / "environments" / "tensorflow" / "tf9.9.toml").write_text(environment)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    copy.lock("tf9.9", "gpu").write_text(f"tensorflow==9.9.9 \\\n    --hash=sha256:{digest}\n")
    return copy


def offline(tmp_path: Path, folder: str) -> dict[str, str]:
    """Return pip's variables that allow only the packages of one folder."""
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / folder)}


def test_the_wheel_of_an_environment_is_downloaded_once(run: Run, tf99_project: Project, tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "tfdet" / "wheels"
    cache.mkdir(parents=True)
    (cache / "tensorflow-9.9.9-mine.whl").touch()  # no wheel is called so
    done = run("tf9.9", "--json", project=tf99_project, **offline(tmp_path, "index"))
    assert done.returncode == ExitCode.OK, done.stderr
    assert json.loads(done.stdout)["environment"] == "tf9.9"
    second = run("tf9.9", "--json", project=tf99_project, **offline(tmp_path, "nothing"))
    assert second.stdout == done.stdout, second.stderr
    assert not list(cache.glob(".part-*"))


def test_the_gpu_code_may_be_in_another_package_than_the_framework(
    run: Run, tf99_project: Project, build_files: dict[str, bytes], tmp_path: Path
) -> None:
    """JAX's framework package only requires its plugin, which has the code and fits every Python."""
    path = make.wheel(tmp_path / "other", build_files, name="held", tag="py3-none-any")
    environment = tf99_project.matrix / "environments" / "tensorflow" / "tf9.9.toml"
    environment.write_text(environment.read_text("utf-8").replace("[pip]\n", '[pip]\ncode = "held==9.9.9"\n'), "utf-8")
    lock = tf99_project.lock("tf9.9", "gpu")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    lock.write_text(lock.read_text() + f"held==9.9.9 \\\n    --hash=sha256:{digest}\n")
    done = run("tf9.9", "--json", project=tf99_project, **offline(tmp_path, "other"))
    assert done.returncode == ExitCode.OK, done.stderr
    assert json.loads(done.stdout)["wheel"]["file"] == path.name
    second = run("tf9.9", "--json", project=tf99_project, **offline(tmp_path, "nothing"))
    assert second.stdout == done.stdout, second.stderr


def test_a_missing_or_changed_wheel_is_reported(run: Run, tf99_project: Project, tmp_path: Path) -> None:
    none = run("tf9.9", project=tf99_project, **offline(tmp_path, "nothing"))
    assert none.returncode == ExitCode.RUN_FAILED
    assert "tensorflow==9.9.9" in none.stderr
    make.wheel(tmp_path / "index", {"tensorflow/other.so": b"something else"})
    false = run("tf9.9", project=tf99_project, **offline(tmp_path, "index"))
    assert false.returncode == ExitCode.USAGE
    assert "does not match the lock file's hash" in false.stderr
    assert not list((tmp_path / "cache").rglob("*.whl"))


def test_an_unreachable_package_index_is_reported(run: Run, tf99_project: Project) -> None:
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_FIND_LINKS": ""}
    done = run("tf9.9", project=tf99_project, **nowhere)
    assert done.returncode == ExitCode.RUN_FAILED
    assert "package index unreachable" in done.stderr
    assert "tfdet audit WHEEL" in done.stderr


def test_a_changed_wheel_in_the_cache_is_downloaded_again(run: Run, tf99_project: Project, tmp_path: Path) -> None:
    run("tf9.9", project=tf99_project, **offline(tmp_path, "index"))
    (cached,) = (tmp_path / "cache" / "tfdet" / "wheels").glob("*.whl")
    original = cached.read_bytes()
    cached.write_bytes(original[:-1] + b"x")
    done = run("tf9.9", "--json", project=tf99_project, **offline(tmp_path, "index"))
    assert done.returncode == ExitCode.OK, done.stderr
    assert cached.read_bytes() == original


def test_written_audits_back_the_cells_until_the_scanner_changes(
    run: Run, tf99_project: Project, tmp_path: Path
) -> None:
    """TEOD is enable_op_determinism(), under which ops may refuse to run; NS1 says that an op has no solution."""
    done = run("tf9.9", "--write", project=tf99_project, **offline(tmp_path, "index"))
    assert done.returncode == ExitCode.OK, done.stderr
    assert "no kernel registrations" in done.stderr  # no CPU lock of it, and no TensorFlow in it
    path = tf99_project.audits / "tf9.9.json"
    assert json.loads(path.read_text())["registrations"] is None

    def crop_cells() -> list[dict[str, object]]:
        status = subprocess.run(
            [sys.executable, "-m", "tfdet", "status", "--json", "--environment", "tf9.9"],
            env={**os.environ, "TFDET_ROOT": str(tf99_project.root)}, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert ("stale: matrix/audits/tf9.9.json" in status.stderr) == stale
        cells = json.loads(status.stdout)["cells"]
        return [c for c in cells if c["source"] == "crop-and-resize-backprop" and c["device"] == "gpu"]

    stale = False
    cells = {cell["solution"]: cell for cell in crop_cells()}
    assert cells["TEOD"]["backing"] == "audited"  # its message is there
    # Atomics are there too, but nobody knows whether this build registers the op for GPUs.
    assert cells["NS1"]["backing"] == "documented" and "none" not in cells
    audit = cells["NS1"]["audit"]
    assert (audit["finding"], audit["reach"], audit["kernels"]) == ("order-dependent", "not established", 1)
    stale = True
    path.write_text(path.read_text().replace('"scanner": "', '"scanner": "0'))
    cells = {cell["solution"]: cell for cell in crop_cells()}
    assert "none" not in cells
    assert cells["NS1"]["backing"] == "documented"


@pytest.mark.tensorflow
def test_a_real_tensorflow_lists_its_kernel_registrations(
    tf_python: Callable[[str], Path], checkout: Project, tmp_path: Path
) -> None:
    registrations_of_ops = registrations._query_tensorflow(tf_python("tf2.21"), tmp_path, checkout.runtime)
    assert "float32" in registrations_of_ops["CropAndResizeGradImage"]["CPU"]
    assert len(registrations_of_ops) > 1000


def test_a_tensorflow_that_does_not_import_is_reported(checkout: Project, tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("raise ImportError('libcublas.so.10.0: cannot open shared object file')\n")
    with pytest.raises(RunFailedError, match="libcublas") as caught:
        registrations._query_tensorflow(Path(sys.executable), tmp_path, checkout.runtime)
    assert "--kernel-registrations" in caught.value.advice


def test_a_stored_audit_that_was_edited_is_refused(run: Run, copy: Project) -> None:
    path = copy.audits / "tf2.0.json"
    path.write_text(path.read_text().replace('"order_dependent": "yes"', '"order_dependent": "maybe"', 1))
    done = run("--compare", "tf2.0", "tf2.21", project=copy)
    assert done.returncode == ExitCode.USAGE
    assert f"{path}: " in done.stderr
    assert "order_dependent" in done.stderr
