"""Whether a file belongs to the user's program or to a package that may be imported at any time."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from tfdeterminism.trace.capture import user_frames


def test_a_package_is_known_from_its_import_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "horovod", raising=False)
    package = tmp_path / "horovod"
    assert user_frames.is_user(str(package / "early.py"))
    late = ModuleType("horovod")
    late.__file__ = str(package / "__init__.py")
    monkeypatch.setitem(sys.modules, "horovod", late)
    assert not user_frames.is_user(str(package / "late.py"))
    assert user_frames.is_user(str(tmp_path / "train.py"))
    assert not user_frames.is_user(pytest.__file__)
