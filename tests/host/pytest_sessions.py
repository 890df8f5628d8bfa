"""Run `pytest --tfdet`, which tests whether the ops of a folder's test files are reproducible, with a fake framework.

The fake framework, `bare`, is in tests/meta/frameworks.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ziglang
from fleets import ROOT

ARGUMENTS = ["--tfdet", "--tfdet-framework", "bare", "--tfdet-repeats", "5"]
ENVIRON = {**os.environ, "TFDET_FRAMEWORKS": str(ROOT / "tests" / "meta" / "frameworks"), "TFDET_ROOT": str(ROOT)}


def run_session(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *words]
    return subprocess.run(command, cwd=folder, env=ENVIRON, capture_output=True, text=True)


def run_in(python: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with the checkout's packages first on the path, as in a user's environment."""
    import_paths = [str(ROOT / "src"), str(ROOT / "runtime"), *(path for path in sys.path if "site-packages" in path)]
    start = f"import sys; sys.path += {import_paths!r}; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    compiler = folder / "compiler"
    if not compiler.exists():  # what `pip install ziglang` gives the interpreter that builds the virtual GPU
        compiler.mkdir()
        (compiler / "ziglang").symlink_to(Path(ziglang.__file__).parent)
    return subprocess.run(
        [python, "-c", start, "-p", "no:cacheprovider", "-rA", *words], cwd=folder,
        env={**os.environ, "TFDET_ROOT": str(ROOT), "PYTHONPATH": str(compiler)}, capture_output=True, text=True,
    )  # fmt: skip
