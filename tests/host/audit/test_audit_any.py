"""`tfdet audit` of packages outside the matrix: any version of a package, a folder of cubins, two versions compared."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import elf_builders as make  # one_kernel(): a fatbin whose only kernel, by default CROP, adds floats atomically
import pytest
import weekly
from library_builders import DATA, cubin

from tfdet.audit.cubin import built_for
from tfdet.audit.elf import read_elf
from tfdet.base.errors import ExitCode
from tfdet.base.paths import Project

TRITON = DATA / "triton"
"""What Triton 3.9.0 kept (TRITON_DISABLE_LINE_INFO=1, sm_90, four warps, BLOCK=256) of two kernels:

    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0.0)))            # total_by_atomics
    tl.store(out + i, 2.0 * tl.load(x + i, mask=i < n), mask=i < n)              # twice
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(checkout: Project, tmp_path: Path) -> Run:
    """Return a function run(arguments) that calls `tfdet audit`; pip finds only the packages in tmp_path/index."""

    def call(*arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index"), "PIP_CONSTRAINT": ""}
        return make.tfdet_audit(checkout, tmp_path, *arguments, **{**index, **env})

    (tmp_path / "index").mkdir()
    return call


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """Publish fast_kernels 1.0 and 2.0 for CPython 3.8 only; 2.0 has one more kernel."""
    library = make.library(tmp_path / "one.so", make.one_kernel()).read_bytes()
    two = make.library(tmp_path / "two.so", make.one_kernel(make.UNKNOWN_KERNEL)).read_bytes()
    tag = "cp38-cp38-manylinux_2_24_x86_64"
    old = make.wheel(tmp_path / "index", {"fast/one.so": library}, "1.0", "fast_kernels", tag)
    make.wheel(tmp_path / "index", {"fast/one.so": library, "fast/two.so": two}, "2.0", "fast_kernels", tag)
    return old


def test_a_package_is_downloaded_once_and_not_installed(run: Run, published: Path, tmp_path: Path) -> None:
    done = run("fast-kernels==1.0", "--json")
    assert done.returncode == ExitCode.OK, done.stderr
    output = json.loads(done.stdout)
    assert (output["target"], output["environment"], output["faults"]) == ("fast-kernels==1.0", None, [])
    assert output["wheel"]["file"] == published.name
    assert [kernel["name"] for kernel in output["kernels"]] == [make.CROP]
    second_run = run("fast-kernels==1.0", "--json", PIP_FIND_LINKS=str(tmp_path / "nothing"))
    assert second_run.stdout == done.stdout, second_run.stderr
    assert not list((tmp_path / "cache" / "tfdet" / "wheels").glob(".part-*"))
    assert not list(tmp_path.rglob("site-packages"))
    assert f"fast-kernels==1.0: {published.name}" in run("fast-kernels==1.0").stdout


@pytest.mark.parametrize(
    ("requirement", "code", "message"),
    [
        ("fast-kernels==3.0", ExitCode.RUN_FAILED, "Available: 2.0, 1.0."),
        ("fast-kernel==1.0", ExitCode.RUN_FAILED, "Is the name right?"),
        ("fast-kernels>=1.0", ExitCode.USAGE, "Name it as in torch==2.14.1"),
        ("fast-kernels==1.*", ExitCode.USAGE, "Name it as in torch==2.14.1"),
        ("fast-kernels=1.0", ExitCode.USAGE, "or package==version is called"),
    ],
)
def test_an_unavailable_version_is_reported(
    run: Run, published: Path, requirement: str, code: ExitCode, message: str
) -> None:
    done = run(requirement)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unreachable_package_index_is_reported(run: Run) -> None:
    nowhere = {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_FIND_LINKS": ""}
    done = run("fast-kernels==1.0", **nowhere)
    assert done.returncode == ExitCode.RUN_FAILED
    assert "package index unreachable" in done.stderr


@weekly.on_day(1, days=2)
def test_the_constraints_of_pips_settings_hold_and_are_named(run: Run, published: Path, tmp_path: Path) -> None:
    (tmp_path / "bounds.txt").write_text("fast-kernels<2\n")
    done = run("fast-kernels==2.0", PIP_CONSTRAINT=str(tmp_path / "bounds.txt"))
    assert done.returncode == ExitCode.RUN_FAILED
    assert "forbidden by a constraint of pip's settings" in done.stderr
    assert run("fast-kernels==2.0").returncode == ExitCode.OK


def test_a_package_without_gpu_code_is_reported(run: Run, tmp_path: Path) -> None:
    host = make.library(tmp_path / "host.so", None).read_bytes()
    make.wheel(tmp_path / "index", {"slow/host.so": host}, "1.0", "slow")
    make.wheel(tmp_path / "index", {"pure/__init__.py": b""}, "1.0", "pure", "py3-none-any")
    slow, pure = run("slow==1.0"), run("pure==1.0")
    assert (slow.returncode, pure.returncode) == (ExitCode.USAGE, ExitCode.USAGE)
    assert "slow==1.0: no GPU code in any of its 1 libraries: a CPU build" in slow.stderr
    assert "no shared library in it" in pure.stderr
    assert "in packages it requires" in pure.stderr


@pytest.mark.parametrize("arch", [70, 80, 90])
def test_the_architecture_of_a_cubin_is_read(arch: int) -> None:
    assert built_for(read_elf(memoryview(cubin(arch)))) == arch


def test_the_architecture_of_a_cubin_of_cuda_13_is_read_from_another_field() -> None:
    content = (TRITON / "twice.cubin").read_bytes()
    assert content[8] == 8  # the version of the format
    assert built_for(read_elf(memoryview(content))) == 90


def verdict_by_kernel(done: subprocess.CompletedProcess[str]) -> dict[tuple[str, str, str], str]:
    """Return {(library, architecture, kernel): "yes", "no" or "unresolved"} from `tfdet audit --json`."""
    assert done.returncode == ExitCode.OK, done.stderr
    return {(k["library"], k["arch"], k["name"]): k["order_dependent"] for k in json.loads(done.stdout)["kernels"]}


@weekly.on_day(1, days=2)
def test_a_cache_folder_of_triton(run: Run, tmp_path: Path) -> None:
    for name in ("total_by_atomics", "twice"):
        folder = tmp_path / "cache-of-triton" / name.upper()
        folder.mkdir(parents=True)
        for suffix in (".cubin", ".ptx"):
            shutil.copy(TRITON / f"{name}{suffix}", folder)
        (folder / f"{name}.ttir").write_text("module {}\n")
    done = run("cache-of-triton", "--json")
    assert verdict_by_kernel(done) == {("TOTAL_BY_ATOMICS/total_by_atomics.cubin", "sm_90", "total_by_atomics"): "yes"}
    output = json.loads(done.stdout)
    assert output["architectures"] == {"sass": ["sm_90"], "ptx": []}  # the PTX beside them is what they are made of
    assert [*output["kernel_counts"].values()] == [{"sm_90": 1}, {"sm_90": 1}]
    text = run("cache-of-triton").stdout
    assert "total_by_atomics" in text
    assert "twice" not in text


def test_gpu_code_that_is_a_file_by_itself(run: Run, tmp_path: Path) -> None:
    assert verdict_by_kernel(run(TRITON / "total_by_atomics.ptx", "--json")) == {
        (str(TRITON / "total_by_atomics.ptx"), "compute_90", "total_by_atomics"): "yes"
    }
    assert verdict_by_kernel(run(TRITON / "total_by_atomics.cubin", TRITON / "twice.cubin", "--json")) == {
        (str(TRITON / "total_by_atomics.cubin"), "sm_90", "total_by_atomics"): "yes"
    }
    assert "yes" in verdict_by_kernel(run(DATA / "golden" / "tf2.21.fatbin", "--json")).values()
    cut = tmp_path / "cut.cubin"
    cut.write_bytes((TRITON / "twice.cubin").read_bytes()[:2000])
    done = run(cut)
    assert done.returncode == ExitCode.USAGE
    assert "cut.cubin: at offset " in done.stderr


def test_cubins_in_a_wheel(run: Run, tmp_path: Path) -> None:
    members = {f"compiled/{path.name}": path.read_bytes() for path in TRITON.iterdir()}
    make.wheel(tmp_path / "index", members, "1.0", "compiled", "py3-none-any")
    assert verdict_by_kernel(run("compiled==1.0", "--json")) == {
        ("compiled/total_by_atomics.cubin", "sm_90", "total_by_atomics"): "yes"
    }


@weekly.on_day(0, days=2)
def test_baseline_shows_the_changes_since_another_version(run: Run, published: Path) -> None:
    done = run("fast-kernels==2.0", "--baseline", "fast-kernels==1.0", "--json")
    assert done.returncode == ExitCode.OK, done.stderr
    output = json.loads(done.stdout)
    assert len(output["kernels"]) == 2
    assert output["difference"]["added"] == {"tensorflow::NobodyKnowsIt": 1}
    assert json.loads(run("--compare", published, "fast-kernels==2.0", "--json").stdout)["removed"] == {}
    text = run("fast-kernels==1.0", "--baseline", "fast-kernels==2.0").stdout
    assert "fast-kernels==2.0 → fast-kernels==1.0" in text
    assert "order-dependent kernels that went\n  tensorflow::NobodyKnowsIt (1)" in text
    assert "architecture" in text  # the audit itself, too
    stored = run("fast-kernels==1.0", "--baseline", "torch2.8")
    assert "torch2.8 → fast-kernels==1.0" in stored.stdout, stored.stderr


def test_an_unreadable_library_is_not_compared(run: Run, published: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.so").write_bytes(b"\x7fELF")
    for done in (run(published, "--baseline", "bad.so"), run("--compare", "bad.so", published)):
        assert done.returncode == ExitCode.USAGE
        assert "bad.so: at offset 0: not an ELF file" in done.stderr
        assert "cannot be compared" in done.stderr
        assert not done.stdout


def test_a_circle_of_links_is_not_taken_for_a_missing_file(run: Run, tmp_path: Path) -> None:
    circle, dangling = tmp_path / "circle.so", tmp_path / "dangling.so"
    circle.symlink_to(circle)
    dangling.symlink_to(tmp_path / "nowhere")
    for path in (circle, dangling):
        done = run(path)
        assert done.returncode == ExitCode.USAGE
        assert "Did you mean" not in done.stderr
        assert ("no such file" in done.stderr) == (path is dangling)
