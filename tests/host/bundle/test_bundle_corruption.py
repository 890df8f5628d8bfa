"""Bundles that were damaged in transit or made by an attacker."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bundle_builders import change_manifest, is_nothing_unpacked, make_bundle, unbundle, write_manifest


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (Path.unlink, "part-02 is missing"),
        (flip, "part-02 has changed"),
        (truncate, "part-02 has 2047 bytes, not 2048: truncated?"),
        (append, "part-02 has 2049 bytes, not 2048: extended?"),
    ],
)
def test_a_damaged_part_is_named_and_nothing_is_left(
    tmp_path: Path, harm: Callable[[Path], None], message: str
) -> None:
    bundle = make_bundle(tmp_path)
    harm(bundle / "tf2.21-gpu.part-02")
    for command in ("unpack", "doctor"):
        done = unbundle(bundle, command)
        assert done.returncode == 2
        assert message in done.stderr + done.stdout
        assert "Copy this part here again." in done.stderr + done.stdout
        assert "part-01" not in done.stderr + done.stdout
    assert is_nothing_unpacked(bundle)


def test_both_of_two_swapped_parts_are_named(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path)
    first, two = bundle / "tf2.21-gpu.part-01", bundle / "tf2.21-gpu.part-02"
    first.rename(bundle / "x")
    two.rename(first)
    (bundle / "x").rename(two)
    done = unbundle(bundle, "unpack")
    assert done.returncode == 2
    assert "part-01 holds the content of tf2.21-gpu.part-02: swapped?" in done.stderr
    assert "part-02 holds the content of tf2.21-gpu.part-01: swapped?" in done.stderr
    assert is_nothing_unpacked(bundle)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"schema":1,"checksum":"0"}', None])
def test_a_damaged_manifest_is_refused(tmp_path: Path, content: bytes | None) -> None:
    bundle = make_bundle(tmp_path)
    if content is None:
        (bundle / "manifest.json").unlink()
    else:
        (bundle / "manifest.json").write_bytes(content)
    done = unbundle(bundle, "run", "--device", "cpu")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 2
    assert "manifest.json" in done.stderr


@pytest.mark.parametrize("name", ["../out", "/tmp/tfdet-out", "a/../../out", "a//b", "", ".", "a\\..\\b", "a/\0"])
def test_a_path_that_leads_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    bundle = change_manifest(make_bundle(tmp_path), lambda content: content["files"][2].update(path=name))
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
        lambda content: content["members"][0]["pieces"][0].__setitem__(2, 7),  # its size, behind file and start
    ],
)
def test_a_manifest_that_contradicts_its_parts_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    bundle = change_manifest(make_bundle(tmp_path), change)
    done = unbundle(bundle, "unpack")
    assert (done.returncode, len(done.stderr.strip().splitlines()[-2:])) == (2, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert is_nothing_unpacked(bundle)


ODD_VALUES = [
    *(None, True, -1, 0, 1, 2**31, 2**40, 2**63, 10**400, 0.5, float("inf"), float("nan"), "", "x", "-1", "x" * 5000),
    *("a/b", "../x", "/dev/zero", ".", "a\0b", "a\nb", "\x1b[2J", "\ud800", "\u202ea", "9" * 5000, [], [[]], [None]),
    *(["\x1b[2J"], ["../x"], [1, 2], [-1, 0, 1], [0, 2**40, 1], [0, 0, 2**40], {}, {"name": "x"}),
]


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path, as a tuple of keys and indices, of every value in a manifest."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from paths_of(inner, (*path, key))


def mutants(content: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield manifests with one field missing, one list entry duplicated, or one value replaced by an odd one."""
    removed, duplicated = object(), object()
    for path in paths_of(content):
        for odd in (removed, duplicated, *ODD_VALUES):
            mutant = copy.deepcopy(content)
            holder = mutant
            for key in path[:-1]:
                holder = holder[key]  # type: ignore[assignment]
            if odd is removed:
                del holder[path[-1]]
            elif odd is not duplicated:
                holder[path[-1]] = odd
            elif isinstance(holder, list):
                holder.append(copy.deepcopy(holder[path[-1]]))
            yield f"{path} {'gone' if odd is removed else 'twice' if odd is duplicated else repr(odd)[:60]}", mutant


def out_of_time(number: int, frame: object) -> None:
    raise TimeoutError


def test_no_changed_manifest_with_a_right_checksum_raises(
    gpu_host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unpacking reports an error, or the result is what the manifest describes.

    gpu_host: unbundle.py as a module, on a simulated host that can run the bundle.
    """
    bundle = make_bundle(tmp_path)
    monkeypatch.setattr(gpu_host.sys, "stderr", io.StringIO())
    monkeypatch.setattr(gpu_host, "command_output", lambda command: "")
    signal.signal(signal.SIGALRM, out_of_time)
    faults, accepted = [], 0
    for number, (name, mutant) in enumerate(mutants(json.loads((bundle / "manifest.json").read_text()))):
        into = tmp_path / f"into{number}"
        signal.alarm(10)
        try:
            write_manifest(bundle, mutant)
            opened = gpu_host.Bundle(str(bundle))
            list(gpu_host.checks(opened, "gpu"))
            gpu_host.unpack(opened, str(into))
            accepted += 1
            for file in mutant["files"]:
                assert hashlib.sha256((into / file["path"]).read_bytes()).hexdigest() == file["sha256"]
        except gpu_host.BundleError as stop:
            if not stop.cause.isprintable() or stop.code not in (2, 3) or len(stop.cause) > 1000:
                faults.append(f"{name}: {stop.cause[:200]!r}")
        except (Exception, TimeoutError) as error:
            faults.append(f"{name}: {type(error).__name__}: {error}")
        finally:
            signal.alarm(0)
        assert into.exists() or not list(tmp_path.glob("into*.unpacking-*")), name
    assert not faults, "\n".join(faults)
    assert accepted, "none was harmless: nothing was tried"


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
def test_a_manifest_that_declares_false_sizes_is_refused_at_once(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], command: str
) -> None:
    bundle = change_manifest(make_bundle(tmp_path), change)
    (tmp_path / "secret").write_text("of the caller")
    done = unbundle(bundle, command, timeout=20)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 2), done.stderr
    assert is_nothing_unpacked(bundle)


def test_a_manifest_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path)
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
@pytest.mark.parametrize("create", [zeros, link, os.mkfifo, Path.mkdir, sparse])
def test_a_part_that_is_no_regular_file_is_not_read(tmp_path: Path, name: str, create: Callable[[Path], None]) -> None:
    bundle = make_bundle(tmp_path)
    (bundle / name).unlink()
    create(bundle / name)
    for command in ("doctor", "unpack"):
        done = unbundle(bundle, command, timeout=20)
        output = done.stdout + done.stderr
        assert (done.returncode, name in output, "Traceback" in output) == (2, True, False), output


def test_no_more_than_the_declared_bytes_are_written(
    gpu_host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_host, "DISK_MARGIN", 0)
    bundle = make_bundle(tmp_path, disk=100)
    with pytest.raises(gpu_host.BundleError, match="more than the manifest declares"):
        gpu_host.unpack(gpu_host.Bundle(str(bundle)), str(tmp_path / "into"))
    assert not list(tmp_path.glob("into*/"))
