"""The search for a CPython of a minor version on this host: the running one, one on PATH, or one of pyenv's."""

import glob
import os
import platform
import subprocess
import sys

_VERSION_CODE = "import platform, sys; print(platform.python_implementation(), '%d.%d' % sys.version_info[:2])"


def find_python(version):
    """Find a CPython interpreter that starts.

    A shim of pyenv fails unless its version is activated, so the versions behind the shims are searched.

    Args:
        version: major and minor version, such as "3.7".

    Returns:
        The interpreter's path, or None if there is none.
    """
    if platform.python_implementation() == "CPython" and "%d.%d" % sys.version_info[:2] == version:
        return sys.executable
    return next((path for path in _candidates(version) if _is_cpython(path, version)), None)


def _candidates(version):
    folders = os.get_exec_path()
    for folder in folders:
        if os.path.basename(folder) != "shims":
            yield os.path.join(folder, "python" + version)
    shims = [folder for folder in folders if os.path.basename(folder) == "shims"]
    roots = [os.environ.get("PYENV_ROOT")] + [os.path.dirname(folder) for folder in shims]
    for root in [root for root in roots if root] + [os.path.join(os.path.expanduser("~"), ".pyenv")]:
        paths = glob.glob(os.path.join(glob.escape(root), "versions", version + ".*", "bin", "python" + version))
        for path in sorted(paths, reverse=True):
            yield path


def _is_cpython(path, version):
    if not os.access(path, os.X_OK):
        return False
    try:
        output = subprocess.check_output([path, "-c", _VERSION_CODE], stderr=subprocess.DEVNULL, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return False
    return output.decode("ascii", "replace").split() == ["CPython", version]
