"""Models that a traced program exports contain no ops of the trace, and run without tfdeterminism."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from forks import Forks, Job, traced

PROGRAM = Path(__file__).resolve().parent / "recorded" / "exports.py"


@pytest.mark.tensorflow
@pytest.mark.parametrize("environment", ["tf2.21", "tf2.0", "tf1.14"])
def test_exported_models_run_without_the_trace(environment: str, forks: Callable[[str], Forks], tmp_path: Path) -> None:
    out = tmp_path / "out"
    (wrote,) = forks(environment).run([traced(tmp_path / "trace", PROGRAM, "write", str(out))])
    assert wrote.returncode == 0, wrote.stderr[-3000:]
    (read,) = forks(environment).run([Job([str(PROGRAM), "read", str(out)])])
    assert (read.returncode, read.stdout) == (0, wrote.stdout), read.stderr[-3000:]
    written = [path for path in out.rglob("*") if path.suffix in (".pb", ".meta")]
    assert len(written) >= (4 if environment != "tf1.14" else 3)
    assert [path.name for path in written if b"tfdet_probe/" in path.read_bytes()] == []
