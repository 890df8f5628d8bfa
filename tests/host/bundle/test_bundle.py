"""Bundles of a few files are packed, split and unpacked. (test_bundle_run.py uses a real TensorFlow.)"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from bundle_builders import FILES, PART, make_bundle, random_bytes, unbundle, write_script
from typer.testing import CliRunner

from tfdet.base.errors import UsageError
from tfdet.base.paths import Project
from tfdet.bundle import pack
from tfdet.bundle.contents import Entry
from tfdet.cli.main import app
from tfdet.engines.interpreters import find_python


def test_an_environment_with_a_package_to_compile_has_no_bundle(checkout: Project, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bundle", "tf2.0-horovod", "--device", "cpu", "--out", str(tmp_path / "carried")])
    assert isinstance(done.exception, UsageError)
    assert not (tmp_path / "carried").exists()


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    first, two = make_bundle(tmp_path / "one"), make_bundle(tmp_path / "two")
    assert [p.name for p in sorted(first.iterdir())] == [p.name for p in sorted(two.iterdir())]
    for path in first.iterdir():
        assert path.read_bytes() == (two / path.name).read_bytes(), path.name


def test_parts_are_no_larger_than_asked(tmp_path: Path) -> None:
    sizes = [path.stat().st_size for path in sorted(make_bundle(tmp_path).glob("*.part-*"))]
    assert len(sizes) == 5
    assert set(sizes[:-1]) == {PART}
    assert 0 < sizes[-1] <= PART


def test_unpacked_files_equal_the_packed_ones(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path)
    done = unbundle(bundle, "unpack")
    assert done.returncode == 0, done.stderr
    into = Path(done.stdout.strip())
    for entry in FILES:
        path = into / entry.path
        assert path.read_bytes() == entry.source
        assert os.access(path, os.X_OK) == entry.executable
    assert (into / FILES[0].path).stat().st_blocks * 512 < 200_000, "zeros take no disk"
    second = unbundle(bundle, "unpack")
    assert (second.returncode, second.stdout, "MiB" in second.stderr) == (0, done.stdout, False)


@pytest.mark.parametrize("minor", ["3.6", "3.7", "3.13"])
def test_every_python_from_3_6_on_unpacks(tmp_path: Path, minor: str) -> None:
    python = find_python(minor)
    if python is None:
        pytest.skip(f"no CPython {minor} here")
    bundle = make_bundle(tmp_path)
    done = unbundle(bundle, python=[str(python), str(bundle / "unbundle.py"), "unpack"])
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip(), FILES[0].path).read_bytes() == FILES[0].source


def test_spans_of_an_entry_are_replaced_by_zeros(tmp_path: Path) -> None:
    source = tmp_path / "library.so"
    source.write_bytes(random_bytes(1000))
    entry = Entry("library.so", source, spans=((100, 200), (900, 1000)))
    expected = random_bytes(1000)[:100] + bytes(100) + random_bytes(1000)[200:900] + bytes(100)
    assert bytes(entry.read(0, 1000)) == expected
    assert bytes(entry.read(150, 800)) == expected[150:950]


def test_a_finished_member_is_not_compressed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_bundle(tmp_path / "one")
    monkeypatch.setattr("lzma.compress", lambda *a, **k: pytest.fail("compressed again"))
    shutil.move(tmp_path / "one" / "cache", tmp_path / "cache")
    assert pack.compress(FILES, tmp_path / "cache", lambda size: None)


def test_large_files_are_split_and_small_ones_joined_into_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "MAX_MEMBER_BYTES", 1000)
    entries = [
        Entry("a", random_bytes(400)),
        Entry("b", random_bytes(2500)),
        Entry("c", random_bytes(500)),
        Entry("d", random_bytes(200)),
    ]
    pieces = [[(p.entry, p.start, p.size) for p in member.pieces] for member in pack.members(entries)]
    assert pieces == [[(1, 0, 1000)], [(1, 1000, 1000)], [(1, 2000, 500)], [(0, 0, 400), (2, 0, 500)], [(3, 0, 200)]]


def test_a_bundle_of_another_schema_is_refused(tmp_path: Path) -> None:
    done = unbundle(make_bundle(tmp_path, schema=2), "doctor")
    assert done.returncode == 2
    assert "the bundle has schema 2, expected 1" in done.stderr


def test_leftovers_of_a_killed_run_are_removed_by_the_next(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path)
    checksum = json.loads((bundle / "manifest.json").read_text())["checksum"]
    leftover = bundle / f"unpacked-{checksum[:12]}.unpacking-abc"
    leftover.mkdir()
    (leftover / "half").write_text("half")
    assert unbundle(bundle, "unpack").returncode == 0
    assert [path.name for path in bundle.iterdir() if path.is_dir()] == [f"unpacked-{checksum[:12]}"]


def test_a_target_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path)
    own_folder = tmp_path / "mine"
    own_folder.mkdir()
    (own_folder / "work").write_text("work")
    done = unbundle(bundle, "unpack", "--target", str(own_folder))
    assert done.returncode == 2
    assert [path.name for path in own_folder.iterdir()] == ["work"]


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 5, 10)])
def test_an_older_python_is_reported(tmp_path: Path, version: tuple[int, int, int]) -> None:
    """vermin (scripts/test) checks that an old Python can parse the file at all."""
    script = str(write_script(tmp_path))
    start = f"import sys; sys.version_info = {version}; exec(compile(open({script!r}).read(), 'unbundle.py', 'exec'))"
    done = unbundle(make_bundle(tmp_path), python=[sys.executable, "-c", start])
    assert done.returncode == 3
    assert f"this is Python {version[0]}.{version[1]}; unbundle.py needs CPython 3.6 or later" in done.stderr
    assert len(done.stderr.splitlines()) == 2
