"""The messages for failures of uv."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfdet.base.errors import RunFailedError
from tfdet.engines import venv


@pytest.mark.parametrize(
    ("stderr", "advice"),
    [
        ("error: Failed to fetch: `https://index.invalid/simple/`", "network"),
        ("error: Failed to build `horovod==0.28.1`\n  cause: The build backend returned an error", "compiler"),
        ("error: Failed to write: No space left on device (os error 28)", "space"),
        ("error: No interpreter found for Python 3.7", "CPython"),
    ],
)
def test_advice_is_about_what_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stderr: str, advice: str) -> None:
    uv = tmp_path / "uv"
    uv.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{stderr}\nEND\nexit 2\n")
    uv.chmod(0o755)
    monkeypatch.setattr(venv, "find_uv_bin", lambda: str(uv))
    with pytest.raises(RunFailedError) as raised:
        venv.run_uv(["pip", "sync"], "3.7")
    words = ("network", "compiler", "space", "CPython")
    assert [word for word in words if word in raised.value.advice] == [advice]
