"""What a Python has installed, of any version, without importing any of it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess

from tfdet.base.errors import UsageError


def active_python() -> str:
    """Of the active virtual environment, else the first on PATH."""
    active = os.environ.get("VIRTUAL_ENV")
    return f"{active}/bin/python" if active else shutil.which("python3") or "python3"


def installed_versions(python: str) -> dict[str, str]:
    """{package: version}, names in lower case; UsageError where there is no such Python."""
    ask = "import json, sys; print(json.dumps(sys.path[1:]))"
    try:
        done = subprocess.run([python, "-c", ask], capture_output=True, text=True, timeout=60, check=True)
        places: list[str] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise UsageError(f"--python {python} does not run", "Pass the Python that your program runs in.") from error
    found = importlib.metadata.distributions(path=places)
    return {name.lower().replace("_", "-"): one.version for one in found if (name := one.metadata["Name"])}
