"""The packages that a Python installation contains; none of them is imported."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess

from tfdet.base.errors import UsageError


def active_python() -> str:
    """Return the Python of the active virtual environment, else the first python3 on PATH."""
    active = os.environ.get("VIRTUAL_ENV")
    return f"{active}/bin/python" if active else shutil.which("python3") or "python3"


def installed_versions(python: str) -> dict[str, str]:
    """Return {package: version}, with names in lower case; UsageError if this Python does not start."""
    program = "import json, sys; print(json.dumps(sys.path[1:]))"
    try:
        process = subprocess.run([python, "-c", program], capture_output=True, text=True, timeout=60, check=True)
        folders: list[str] = json.loads(process.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise UsageError(f"--python {python} does not run", "Pass the Python that your program runs in.") from error
    packages = importlib.metadata.distributions(path=folders)
    return {name.lower().replace("_", "-"): p.version for p in packages if (name := p.metadata["Name"])}
