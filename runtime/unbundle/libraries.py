"""CUDA libraries that the host provides, for bundles without them.

Fields of the manifest: host_libraries, the sonames that the bundle lacks and the host has to provide; from_host, what
the bundle uses of the host, as texts. 4 is the exit code if the asked device cannot be used.
"""

import collections
import contextlib
import glob
import os
import re
import shutil
import subprocess
import tempfile

from tfdet_common.interpreters import find_python
from tfdet_common.versions import numbers
from unbundle.check import missing, ok


def check_host_libraries(bundle):
    name, required = "CUDA libraries", bundle["host_libraries"]
    if not required:
        return ok(
            name,
            "all in the bundle"
            if bundle["brings_cuda"]
            else "the host's own: {}".format("; ".join(bundle["from_host"])),
        )
    libraries = host_libraries(bundle)
    absent = [soname for soname in dlopened_libraries(required) if soname not in libraries]
    if absent:
        return missing(
            name,
            4,
            "{} not found on this host".format(", ".join(absent)),
            "Name their folder in LD_LIBRARY_PATH, or bundle without --use-host-libraries.",
        )
    return ok(name, "; ".join(libraries_summary(libraries)))


def dlopened_libraries(sonames):
    """Return the libraries that TensorFlow itself opens by name.

    cuDNN opens its libcudnn_* parts when an op needs them.
    """
    return [soname for soname in sonames if not soname.startswith("libcudnn_")]


def host_libraries(bundle):
    """Return the host's files by soname, {soname: path}.

    A path is a file of that name, else one of another major version.
    """
    folders = library_folders(bundle)
    libraries = {}
    for soname in bundle["host_libraries"]:
        stem = soname.split(".so")[0] + ".so"
        exact = [os.path.join(folder, soname) for folder in folders if os.path.exists(os.path.join(folder, soname))]
        other_versions = [
            path
            for folder in folders
            for path in glob.glob(os.path.join(glob.escape(folder), stem + ".*"))
            if re.search(r"\.so\.\d+$", path)
        ]
        if exact or other_versions:
            libraries[soname] = (
                exact[0] if exact else max(other_versions, key=lambda path: numbers(path.rsplit(".so.", 1)[1]))
            )
    return libraries


def libraries_summary(libraries):
    """Return the host's libraries as records state them: names with full version, without private folders."""
    return [
        "{}: {}".format(soname, os.path.basename(os.path.realpath(path))) for soname, path in sorted(libraries.items())
    ]


def library_folders(bundle):
    folders = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if folder]
    cache = command_output(["ldconfig", "-p"]) or command_output(["/sbin/ldconfig", "-p"])
    folders += [os.path.dirname(path) for path in re.findall(r"=> (/\S+)", cache)]
    folders += sorted(glob.glob("/usr/local/cuda*/lib64")) + ["/usr/lib/x86_64-linux-gnu", "/usr/lib64"]
    python = find_python(bundle["python"])
    code = "import site, sys; print('\\n'.join(site.getsitepackages() + [site.getusersitepackages()]))"
    for site in command_output([python, "-c", code]).splitlines() if python else []:
        folders += sorted(glob.glob(os.path.join(glob.escape(site), "nvidia", "*", "lib")))
    return list(collections.OrderedDict.fromkeys(folders))


def command_output(command):
    try:
        return subprocess.check_output(command, stderr=subprocess.DEVNULL, timeout=60).decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError):
        return ""


@contextlib.contextmanager
def host_links(bundle, device):
    """Provide the host's libraries under the names that TensorFlow opens, by links in a temporary folder.

    Yields:
        The folders for LD_LIBRARY_PATH, and the libraries as records state them.
    """
    libraries = host_libraries(bundle) if device == "gpu" else {}
    if not libraries:
        yield [], list(bundle["from_host"]) if device == "gpu" and not bundle["host_libraries"] else []
        return
    folder = tempfile.mkdtemp(prefix="tfdet-host-")
    try:
        for soname, path in libraries.items():
            os.symlink(path, os.path.join(folder, soname))
        yield [folder] + sorted({os.path.dirname(path) for path in libraries.values()}), libraries_summary(libraries)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
