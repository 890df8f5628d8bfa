"""Bundles of a few files: parts, faults, safety.  (test_bundle_run.py carries a real TensorFlow.)"""

from __future__ import annotations

import copy
import ctypes
import errno
import hashlib
import importlib.util
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tfdet.base.errors import UsageError
from tfdet.base.paths import Project
from tfdet.bundle import pack, stub
from tfdet.bundle.build import parse_capability, parse_size
from tfdet.bundle.contents import Choice, Entry, site_contents
from tfdet.engines.interpreters import find_python
from tfdet.matrix.load import load_matrix
from tfdet.matrix.plan import make_plan

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
PART = 2048
FACTS = {
    "schema": 1, "environment": "tf2.21", "device": "gpu", "python": f"3.{sys.version_info.minor}", "glibc": "2.17",
    "min_driver": "525.60.13", "compute_capability": "9.0", "brings_cuda": True, "host_libraries": [], "trimmed": [],
    "stubbed": [], "left_out": [], "from_host": [], "disk": 1 << 20,
}  # fmt: skip


def noise(size: int, seed: bytes = b"") -> bytes:
    """Bytes that do not compress: parts of a known number."""
    blocks = [hashlib.sha256(seed + bytes([n // 256, n % 256])).digest() for n in range(-(-size // 32))]
    return b"".join(blocks)[:size]


FILES = [
    Entry("site/large.so", noise(5000) + bytes(300_000) + noise(3000, b"end"), executable=True),
    Entry("site/package/empty.py", b""),
    Entry("site/package/text.py", b"print('text')\n" * 9),
]


def make(folder: Path, entries: list[Entry] = FILES, **changes: Any) -> Path:
    """A bundle of these entries in `folder`/carried."""
    out = folder / "carried"
    out.mkdir(parents=True)
    packed = pack.compress(entries, folder / "cache", lambda size: None)
    parts = pack.write_parts(packed, out, "tf2.21-gpu", PART)
    write_manifest(out, pack.manifest(entries, packed, parts, FACTS | changes))
    shutil.copy(RUNTIME / "unbundle.py", out)
    return out


def write_manifest(out: Path, content: dict[str, Any]) -> None:
    content.pop("checksum", None)
    content["checksum"] = hashlib.sha256(pack.canonical(content).encode()).hexdigest()
    (out / "manifest.json").write_text(json.dumps(content))


def unbundle(
    bundle: Path, *arguments: str, python: list[str] | None = None, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    command = [*(python or [sys.executable, str(bundle / "unbundle.py")]), *arguments]
    return subprocess.run(command, cwd=bundle.parent, capture_output=True, text=True, timeout=timeout)


def nothing_stays(bundle: Path) -> bool:
    return not [path for path in bundle.iterdir() if path.is_dir()]


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    one, two = make(tmp_path / "one"), make(tmp_path / "two")
    assert [p.name for p in sorted(one.iterdir())] == [p.name for p in sorted(two.iterdir())]
    for path in one.iterdir():
        assert path.read_bytes() == (two / path.name).read_bytes(), path.name


def test_parts_are_no_larger_than_asked(tmp_path: Path) -> None:
    sizes = [path.stat().st_size for path in sorted(make(tmp_path).glob("*.part-*"))]
    assert len(sizes) == 5
    assert set(sizes[:-1]) == {PART}
    assert 0 < sizes[-1] <= PART


def test_what_was_packed_is_unpacked(tmp_path: Path) -> None:
    bundle = make(tmp_path)
    done = unbundle(bundle, "unpack")
    assert done.returncode == 0, done.stderr
    into = Path(done.stdout.strip())
    for entry in FILES:
        path = into / entry.path
        assert path.read_bytes() == entry.source
        assert os.access(path, os.X_OK) == entry.executable
    assert (into / FILES[0].path).stat().st_blocks * 512 < 200_000, "zeros take no disk"
    again = unbundle(bundle, "unpack")
    assert (again.returncode, again.stdout, "MiB" in again.stderr) == (0, done.stdout, False)


@pytest.mark.parametrize("minor", ["3.6", "3.7", "3.13"])
def test_every_python_from_3_6_on_unpacks(tmp_path: Path, minor: str) -> None:
    python = find_python(minor)
    if python is None:
        pytest.skip(f"no CPython {minor} here")
    bundle = make(tmp_path)
    done = unbundle(bundle, python=[str(python), str(bundle / "unbundle.py"), "unpack"])
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip(), FILES[0].path).read_bytes() == FILES[0].source


def test_blanked_spans_are_zeros(tmp_path: Path) -> None:
    source = tmp_path / "library.so"
    source.write_bytes(noise(1000))
    entry = Entry("library.so", source, spans=((100, 200), (900, 1000)))
    wanted = noise(1000)[:100] + bytes(100) + noise(1000)[200:900] + bytes(100)
    assert bytes(entry.read(0, 1000)) == wanted
    assert bytes(entry.read(150, 800)) == wanted[150:950]


def test_a_finished_member_is_not_compressed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "one")
    monkeypatch.setattr("lzma.compress", lambda *a, **k: pytest.fail("compressed again"))
    shutil.move(tmp_path / "one" / "cache", tmp_path / "cache")
    assert pack.compress(FILES, tmp_path / "cache", lambda size: None)


def test_members_are_cut_and_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "MEMBER", 1000)
    entries = [Entry("a", noise(400)), Entry("b", noise(2500)), Entry("c", noise(500)), Entry("d", noise(200))]
    found = [[(p.entry, p.start, p.size) for p in member.pieces] for member in pack.members(entries)]
    assert found == [[(1, 0, 1000)], [(1, 1000, 1000)], [(1, 2000, 500)], [(0, 0, 400), (2, 0, 500)], [(3, 0, 200)]]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (Path.unlink, "part-02 is missing"),
        (flip, "part-02 was changed"),
        (truncate, "part-02 has 2047 bytes, not 2048: truncated?"),
        (append, "part-02 has 2049 bytes, not 2048: something was added?"),
    ],
)
def test_a_harmed_part_is_named_and_nothing_stays(tmp_path: Path, harm: Callable[[Path], None], said: str) -> None:
    bundle = make(tmp_path)
    harm(bundle / "tf2.21-gpu.part-02")
    for command in ("unpack", "doctor"):
        done = unbundle(bundle, command)
        assert done.returncode == 2
        assert said in done.stderr + done.stdout
        assert "Carry this part here again." in done.stderr + done.stdout
        assert "part-01" not in done.stderr + done.stdout
    assert nothing_stays(bundle)


def test_swapped_parts_are_named_both(tmp_path: Path) -> None:
    bundle = make(tmp_path)
    one, two = bundle / "tf2.21-gpu.part-01", bundle / "tf2.21-gpu.part-02"
    one.rename(bundle / "x")
    two.rename(one)
    (bundle / "x").rename(two)
    done = unbundle(bundle, "unpack")
    assert done.returncode == 2
    assert "part-01 holds what belongs into tf2.21-gpu.part-02: swapped?" in done.stderr
    assert "part-02 holds what belongs into tf2.21-gpu.part-01: swapped?" in done.stderr
    assert nothing_stays(bundle)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"schema":1,"checksum":"0"}', None])
def test_a_harmed_manifest(tmp_path: Path, content: bytes | None) -> None:
    bundle = make(tmp_path)
    if content is None:
        (bundle / "manifest.json").unlink()
    else:
        (bundle / "manifest.json").write_bytes(content)
    done = unbundle(bundle, "run", "--device", "cpu")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 2
    assert "manifest.json" in done.stderr


def changed(bundle: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The bundle with another manifest, its checksum right."""
    content = json.loads((bundle / "manifest.json").read_text())
    change(content)
    write_manifest(bundle, content)
    return bundle


@pytest.mark.parametrize("name", ["../out", "/tmp/tfdet-out", "a/../../out", "a//b", "", ".", "a\\..\\b", "a/\0"])
def test_no_file_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    bundle = changed(make(tmp_path), lambda content: content["files"][2].update(path=name))
    before = sorted(tmp_path.rglob("*"))
    done = unbundle(bundle, "unpack")
    assert done.returncode == 2
    assert "outside of its folder" in done.stderr
    assert [path for path in sorted(tmp_path.rglob("*")) if path.suffix != ".lock"] == before


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["files"][0].update(sha256="0" * 64),
        lambda content: content["files"][1].update(path=content["files"][2]["path"]),
        lambda content: content["members"][0]["pieces"][0].__setitem__(2, 7),
    ],
)
def test_a_manifest_that_does_not_fit_its_parts(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    bundle = changed(make(tmp_path), change)
    done = unbundle(bundle, "unpack")
    assert (done.returncode, len(done.stderr.strip().splitlines()[-2:])) == (2, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert nothing_stays(bundle)


ODD = [None, True, -1, 0, 1, 2**31, 2**40, 2**63, 10**400, 0.5, float("inf"), float("nan"), "", "x", "-1", "x" * 5000,
       "a/b", "../x", "/dev/zero", ".", "a\0b", "a\nb", "\x1b[2J", "\ud800", "\u202ea", "9" * 5000, [], [[]], [None],
       ["\x1b[2J"], ["../x"], [1, 2], [-1, 0, 1], [0, 2**40, 1], [0, 0, 2**40], {}, {"name": "x"}]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything in a manifest."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def mutants(content: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each field missing, there twice where it is one of a list, and with each odd value in its place."""
    gone, twice = object(), object()
    for path in places(content):
        for odd in (gone, twice, *ODD):
            mutant = copy.deepcopy(content)
            holder = mutant
            for key in path[:-1]:
                holder = holder[key]  # type: ignore[assignment]
            if odd is gone:
                del holder[path[-1]]
            elif odd is not twice:
                holder[path[-1]] = odd
            elif isinstance(holder, list):
                holder.append(copy.deepcopy(holder[path[-1]]))
            yield f"{path} {'gone' if odd is gone else 'twice' if odd is twice else repr(odd)[:60]}", mutant


def out_of_time(number: int, frame: object) -> None:
    raise TimeoutError


def test_no_manifest_with_a_right_checksum_is_a_traceback(
    gpu_host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused in words, or what is unpacked is what it says."""
    bundle = make(tmp_path)
    monkeypatch.setattr(gpu_host.sys, "stderr", io.StringIO())
    monkeypatch.setattr(gpu_host, "output", lambda command: "")
    signal.signal(signal.SIGALRM, out_of_time)
    faults, taken = [], 0
    for number, (name, mutant) in enumerate(mutants(json.loads((bundle / "manifest.json").read_text()))):
        into = tmp_path / f"into{number}"
        signal.alarm(10)
        try:
            write_manifest(bundle, mutant)
            opened = gpu_host.Bundle(str(bundle))
            list(gpu_host.checks(opened, "gpu"))
            gpu_host.unpack(opened, str(into))
            taken += 1
            for file in mutant["files"]:
                assert hashlib.sha256((into / file["path"]).read_bytes()).hexdigest() == file["sha256"]
        except gpu_host.Stop as stop:
            if not stop.cause.isprintable() or stop.code not in (2, 3) or len(stop.cause) > 1000:
                faults.append(f"{name}: {stop.cause[:200]!r}")
        except (Exception, TimeoutError) as error:
            faults.append(f"{name}: {type(error).__name__}: {error}")
        finally:
            signal.alarm(0)
        assert into.exists() or not list(tmp_path.glob("into*.unpacking-*")), name
    assert not faults, "\n".join(faults)
    assert taken, "none was harmless: nothing was tried"


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["parts"][1].update(name="/dev/zero"),
        lambda content: content["parts"][1].update(name="../secret"),
        lambda content: content["files"][0].update(size=1 << 40),
        lambda content: (
            content["files"][0].update(size=1 << 40),
            content["members"][0]["pieces"][0].__setitem__(2, 1 << 40),
        ),
        lambda content: content.update(disk=1 << 40, files=[content["files"][0] | {"size": 1 << 40}]),
        lambda content: content.update(left_out=[[]] * 100_000),
    ],
)
@pytest.mark.parametrize("command", ["doctor", "unpack", "run"])
def test_a_lying_manifest_ends_at_once(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], command: str
) -> None:
    bundle = changed(make(tmp_path), change)
    (tmp_path / "secret").write_text("of the caller")
    done = unbundle(bundle, command, timeout=20)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 2), done.stderr
    assert nothing_stays(bundle)


def test_a_manifest_nested_too_deeply(tmp_path: Path) -> None:
    bundle = make(tmp_path)
    (bundle / "manifest.json").write_text('{"parts":' * 100_000)
    done = unbundle(bundle, "unpack", timeout=20)
    assert (done.returncode, "manifest.json is damaged" in done.stderr) == (2, True), done.stderr


def zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link(path: Path) -> None:
    path.symlink_to(path.parent / "unbundle.py")


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize("name", ["tf2.21-gpu.part-02", "manifest.json"])
@pytest.mark.parametrize("put", [zeros, link, os.mkfifo, Path.mkdir, sparse])
def test_what_is_no_plain_file_is_not_read(tmp_path: Path, name: str, put: Callable[[Path], None]) -> None:
    bundle = make(tmp_path)
    (bundle / name).unlink()
    put(bundle / name)
    for command in ("doctor", "unpack"):
        done = unbundle(bundle, command, timeout=20)
        said = done.stdout + done.stderr
        assert (done.returncode, name in said, "Traceback" in said) == (2, True, False), said


def test_more_than_is_declared_is_not_written(gpu_host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_host, "SPARE", 0)
    bundle = make(tmp_path, disk=100)
    with pytest.raises(gpu_host.Stop, match="more than the manifest declares"):
        gpu_host.unpack(gpu_host.Bundle(str(bundle)), str(tmp_path / "into"))
    assert not list(tmp_path.glob("into*/"))


def test_the_bounds_are_those_of_the_packer(script: Any) -> None:
    assert script.MEMBER == pack.MEMBER


def test_another_schema(tmp_path: Path) -> None:
    done = unbundle(make(tmp_path, schema=2), "doctor")
    assert done.returncode == 2
    assert "a bundle of schema 2, this script reads 1" in done.stderr


def test_what_a_killed_run_left_is_gone_after_the_next(tmp_path: Path) -> None:
    bundle = make(tmp_path)
    checksum = json.loads((bundle / "manifest.json").read_text())["checksum"]
    left = bundle / f"unpacked-{checksum[:12]}.unpacking-abc"
    left.mkdir()
    (left / "half").write_text("half")
    assert unbundle(bundle, "unpack").returncode == 0
    assert [path.name for path in bundle.iterdir() if path.is_dir()] == [f"unpacked-{checksum[:12]}"]


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    bundle = make(tmp_path)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "work").write_text("work")
    done = unbundle(bundle, "unpack", "--into", str(mine))
    assert done.returncode == 2
    assert [path.name for path in mine.iterdir()] == ["work"]


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 5, 10)])
def test_an_older_python_is_told(tmp_path: Path, version: tuple[int, int, int]) -> None:
    """That it can read the file at all is vermin's to say (scripts/test)."""
    script = str(RUNTIME / "unbundle.py")
    start = f"import sys; sys.version_info = {version}; exec(compile(open({script!r}).read(), 'unbundle.py', 'exec'))"
    done = unbundle(make(tmp_path), python=[sys.executable, "-c", start])
    assert done.returncode == 3
    assert f"this is Python {version[0]}.{version[1]}; unbundle.py needs CPython 3.6 or later" in done.stderr
    assert len(done.stderr.splitlines()) == 2


# --- the host, made up ---------------------------------------------------------------------------------------


@pytest.fixture
def script() -> Any:
    """unbundle.py as a module."""
    spec = importlib.util.spec_from_file_location("unbundle", RUNTIME / "unbundle.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def gpu_host(script: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script on a host that has all that a GPU bundle needs."""
    h200 = script.Gpu("NVIDIA H200", "9.0", 143771)
    monkeypatch.setattr(script, "nvml", lambda: script.Nvidia("580.95.05", [h200]))
    monkeypatch.setattr(script.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(script, "processor_flags", lambda: ["avx"])
    monkeypatch.setattr(script.os, "confstr", lambda name: "glibc 2.36")
    monkeypatch.setattr(script, "read_text", lambda path: "MemAvailable:   67108864 kB\n")
    return script


def fault(script: Any, bundle: Path, device: str = "gpu") -> tuple[int, str, str]:
    """(code, cause, advice) with which a run on this host ends; (0, "", "") if it would begin."""
    try:
        script.require(script.checks(script.Bundle(str(bundle)), device))
    except script.Stop as stop:
        return stop.code, stop.cause, stop.advice
    return 0, "", ""


def test_a_host_that_has_all(gpu_host: Any, tmp_path: Path) -> None:
    assert fault(gpu_host, make(tmp_path)) == (0, "", "")


@pytest.mark.parametrize(
    ("name", "value", "code", "cause"),
    [
        ("platform.machine", lambda: "aarch64", 3, "processor: aarch64, the bundle is for x86_64"),
        ("processor_flags", lambda: ["sse2"], 3, "processor: no AVX"),
        ("os.confstr", lambda name: "glibc 2.12", 3, "glibc: 2.12 is too old, the packages need 2.17"),
        ("find_python", lambda version: None, 3, "the bundle is for CPython"),
        ("read_text", lambda path: "MemAvailable:   524288 kB\n", 3, "memory: 0.5 GiB free, a run takes 4.0"),
        ("nvml", lambda: None, 4, "driver: no NVIDIA driver answers"),
    ],
)
def test_a_host_that_lacks_something(
    gpu_host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object, code: int, cause: str
) -> None:
    owner, _, attribute = name.rpartition(".")
    monkeypatch.setattr(getattr(gpu_host, owner) if owner else gpu_host, attribute, value)
    found = fault(gpu_host, make(tmp_path))
    assert found[0] == code
    assert cause in found[1]
    assert found[2]


@pytest.mark.parametrize(
    ("driver", "gpus", "cause"),
    [
        ("470.42", [("H200", "9.0", 1)], "driver: 470.42 is too old"),
        ("99.1", [("H200", "9.0", 1)], "driver: 99.1 is too old"),
        ("580.1", [], "GPU: none is visible"),
        ("580.1", [("V100", "7.0", 16384)], "V100 (7.0, 16 GiB); the bundle holds code for 9.0 only"),
        ("580.1", [("B200", "10.0", 16384)], "B200 (10.0, 16 GiB); the bundle holds code for 9.0 only"),
    ],
)
def test_a_driver_or_a_gpu_that_does_not_fit(
    gpu_host: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    driver: str,
    gpus: list[tuple[str, str, int]],
    cause: str,
) -> None:
    found = [gpu_host.Gpu(*gpu) for gpu in gpus]
    monkeypatch.setattr(gpu_host, "nvml", lambda: gpu_host.Nvidia(driver, found))
    told = fault(gpu_host, make(tmp_path))
    assert (told[0], cause in told[1]) == (4, True), told


def test_a_bundle_for_the_cpu_is_none_for_a_gpu(gpu_host: Any, tmp_path: Path) -> None:
    bundle = make(tmp_path, device="cpu", compute_capability=None)
    assert fault(gpu_host, bundle)[0] == 4
    assert fault(gpu_host, bundle, "cpu")[0] == 0


def test_too_little_disk_is_told_before_anything_is_written(
    gpu_host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = make(tmp_path)
    monkeypatch.setattr(gpu_host.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1 << 20}))
    with pytest.raises(gpu_host.Stop) as caught:
        gpu_host.unpack(gpu_host.Bundle(str(bundle)), str(tmp_path / "into"))
    assert caught.value.code == 3
    assert "GiB free, unpacked it takes" in caught.value.cause


def test_a_disk_that_fills_up_leaves_nothing_half_unpacked(
    gpu_host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: str, first: int, content: memoryview, room: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    monkeypatch.setattr(gpu_host, "write_piece", full)
    into = tmp_path / "into"
    with pytest.raises(gpu_host.Stop) as caught:
        gpu_host.unpack(gpu_host.Bundle(str(make(tmp_path))), str(into))
    assert (caught.value.code, "no space left" in caught.value.cause) == (3, True)
    assert not list(tmp_path.glob("into*/"))


def test_the_hosts_own_libraries(gpu_host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The very name wins; another major version is linked under the name that TensorFlow asks for, and told."""
    wanted = ["libcublas.so.12", "libcudnn.so.9", "libcudnn_adv.so.9"]
    bundle = gpu_host.Bundle(str(make(tmp_path, host_libraries=wanted)))
    folder = tmp_path / "cuda"
    folder.mkdir()
    monkeypatch.setattr(gpu_host, "library_folders", lambda bundle: [str(folder)])
    check = gpu_host.check_host_libraries(bundle)
    assert (check.code, check.detail) == (4, "libcublas.so.12, libcudnn.so.9 not found on this host")
    (folder / "libcublas.so.13.1.0").touch()
    (folder / "libcublas.so.13").symlink_to("libcublas.so.13.1.0")
    (folder / "libcudnn.so.9").touch()
    assert gpu_host.check_host_libraries(bundle).state == "ok"
    with gpu_host.host_links(bundle, "gpu") as (folders, said):
        assert said == ["libcublas.so.12: libcublas.so.13.1.0", "libcudnn.so.9: libcudnn.so.9"]
        assert Path(folders[0], "libcublas.so.12").resolve() == (folder / "libcublas.so.13.1.0").resolve()
        assert folders[1:] == [str(folder)]
    assert not Path(folders[0]).exists()


# --- what goes in --------------------------------------------------------------------------------------------


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


SITE = {
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
def site(tmp_path: Path) -> Path:
    for name in [*SITE, *KEPT, PLUGIN]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def paths(entries: list[Entry]) -> set[str]:
    return {entry.path.removeprefix("site/") for entry in entries}


def test_what_stays_behind_is_said(site: Path) -> None:
    found = site_contents(site, Choice())
    assert paths(found.entries) == {*KEPT, PLUGIN.replace(".so", ".py")}
    assert set(found.left_out) == set(SITE.values())
    assert (found.stubbed, found.from_host, found.trimmed) == (["_pywrap_profiler_plugin"], [], [])


def test_stubs_and_the_hosts_own(site: Path) -> None:
    found = site_contents(site, Choice(None, ("cusolver", "cusparse", "cudnn-adv"), ("cublas",)))
    assert found.from_host == ["libcublas.so.12", "libcublasLt.so.12"]
    assert set(found.stubbed) == {
        "_pywrap_profiler_plugin", "libcusolver.so.11", "libcusparse.so.12", "cudnn-adv"
    }  # fmt: skip
    assert "nvJitLink" in found.left_out, "only the two libraries that are stubs need it"
    by_path = {entry.path: entry for entry in found.entries}
    assert by_path["site/nvidia/cusolver/lib/libcusolver.so.11"].source == stub.shared_library("libcusolver.so.11")


def test_names_that_cannot_be() -> None:
    for choice in (("cudart",), ()), (("cufft",), ("cufft",)), ((), ("nccl",)):
        with pytest.raises(UsageError):
            Choice(None, *choice)
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
    ("arguments", "said"),
    [
        (["tf2.99"], "no environment is called 'tf2.99'"),
        (["ngc19.06-py3"], "is an image, not built from packages"),
        (["tf1.14", "--device", "cpu", "--stub", "cufft"], "holds no GPU code"),
        (["tf2.21", "--python", "3"], "--python 3"),
        (["tf2.21", "--part-size", "10"], "less than 1 MiB"),
        (["tf2.21", "--compute-capability", "sm_90"], "'sm_90' is no compute capability"),
        (["tf2.21", "--use-host-libs", "cublast"], "cublas"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_brought(
    checkout: Project, tmp_path: Path, arguments: list[str], said: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tfdet", "bundle", *arguments, "--out", str(tmp_path / "out")],
        env={**os.environ, "TFDET_ROOT": str(checkout.root), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_with_other_files_is_not_written_into(checkout: Project, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    done = subprocess.run(
        [sys.executable, "-m", "tfdet", "bundle", "tf1.14", "--device", "cpu", "--out", str(tmp_path)],
        env={**os.environ, "TFDET_ROOT": str(checkout.root)}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2
    assert "holds other files (thesis.tex)" in done.stderr


def test_the_most_valuable_cells_come_first(checkout: Project) -> None:
    matrix = load_matrix(checkout.matrix)
    cells = [c for c in make_plan(matrix, "tf2.21", ordered=True)["cells"] if c["device"] == "gpu"]
    order = [(c["source"], c["solution"]) for c in sorted(cells, key=lambda c: c["rank"])]
    confirmed = [s for s in matrix.sources if matrix.sources[s].group == "gpu-confirmed"]
    confirmed.sort(key=lambda s: matrix.sources[s].order)
    assert order[: 2 * len(confirmed)] == [(s, key) for s in confirmed for key in ("none", "TEOD")]
    assert order[2 * len(confirmed)] == ("block-lstm-grad", "none")
    assert all("rank" not in c for c in make_plan(matrix, "tf2.21")["cells"])
