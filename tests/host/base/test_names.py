"""Names that are not UTF-8 are shown with escaped bytes, in JSON that every parser accepts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tfdet.audit import targets
from tfdet.audit.report import audit
from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.base.sanitize import dump_json
from tfdet.matrix.load import load_matrix
from tfdeterminism.trace import untrusted

NAMES = [b"a\xff", b"\xed\xa0\x80", "é\U0001f600".encode(), b"\\udcff", b"\\\xff\\", b"\x1b[2J", b'"\xff"']


@pytest.mark.parametrize("name", [os.fsdecode(name) for name in NAMES])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_json_of_any_name_is_valid_and_has_escaped_bytes(name: str, ascii_only: bool) -> None:
    encodable = name.encode("utf-8", "backslashreplace").decode()
    for text in (dump_json({name: [name]}, ascii_only=ascii_only), untrusted.to_json({name: [name]})):
        assert json.loads(text) == {encodable: [encodable]}
        assert text.isascii() or not ascii_only
        text.encode()


def test_an_audit_accepts_any_library_name(tmp_path: Path, checkout: Project) -> None:
    folder = tmp_path / os.fsdecode(b"p\xff")
    folder.mkdir()
    for name in (b"\xfe.so", b"a.so"):
        Path(folder, os.fsdecode(name)).write_bytes(b"no library")
    (target,), failed = targets.resolve(checkout, load_matrix(checkout.matrix), [str(folder)])
    result = audit(target, None, [])
    assert not failed and len(result.faults) == 2
    json.dumps(result.as_json(), ensure_ascii=False).encode()


@pytest.mark.parametrize("how", ["closed", "circle"])
def test_an_unreadable_library_in_a_folder_is_reported(
    tmp_path: Path, checkout: Project, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unreadable library is reported, not treated as absent."""
    folder = tmp_path / "package"
    (folder / "inner").mkdir(parents=True)
    (folder / "a.so").write_bytes(b"no library")
    if how == "circle":
        (folder / "inner" / "b.so").symlink_to("b.so")
    else:
        scandir = os.scandir

        def refusing(path: str | Path) -> object:
            if Path(path).name == "inner":
                raise PermissionError(13, "Permission denied", str(path))
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refusing)
    (target,), _ = targets.resolve(checkout, load_matrix(checkout.matrix), [str(folder)])
    assert list(target.libraries) == ["a.so"]
    assert any("inner" in fault for fault in target.faults), target.faults


def test_a_folder_with_only_unreadable_libraries_is_reported(tmp_path: Path, checkout: Project) -> None:
    (tmp_path / "b.so").symlink_to("b.so")
    _, failed = targets.resolve(checkout, load_matrix(checkout.matrix), [str(tmp_path)])
    assert isinstance(failed[0], DataError) and "b.so" in failed[0].cause
