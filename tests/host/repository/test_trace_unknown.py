"""With a TensorFlow whose internals are unknown, the trace prints a message and the program continues."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUNTIME = Path(__file__).resolve().parents[3] / "runtime"
UNKNOWN = """
__version__ = "9.0"
class keras:
    class callbacks:
        class Callback:
            class model:
                weights = []
"""
PROGRAMS = {
    "record": "with trace.record('out'):\n    import tensorflow",
    "callback": "one = trace.callback('out')\none.on_train_begin()\none.on_train_end()",
}


@pytest.mark.parametrize("entry_point", sorted(PROGRAMS))
def test_an_unknown_tensorflow_does_not_end_the_program(tmp_path: Path, entry_point: str) -> None:
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text(UNKNOWN)
    program = f"from tfdeterminism import trace\n{PROGRAMS[entry_point]}\nprint('went on')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{RUNTIME}"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr
    assert "TensorFlow 9.0 cannot be traced" in done.stderr
