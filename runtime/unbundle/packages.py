"""Packages of the host's own Python, for bundles without packages.

bundle["host_packages"]: the pinned versions of the bundle's environment, "NAME==VERSION", the framework first.
"""

import subprocess

from tfdet_common.interpreters import find_python
from unbundle.check import missing, ok

VERSIONS_CODE = """
import sys
from importlib import metadata
for name in sys.argv[1:]:
    try:
        print(name, metadata.version(name))
    except metadata.PackageNotFoundError:
        pass
"""


def check_host_packages(bundle):
    """Check that the framework has the environment's version; records state the versions of other packages."""
    name, required = "packages", bundle["host_packages"]
    if not required:
        return ok(name, "all in the bundle")
    framework, version = required[0].split("==")
    versions = host_packages(bundle)
    host_version = versions.get(framework)
    if host_version is None or without_local_version(host_version) != version:
        return missing(
            name,
            3,  # exit code: this host lacks something
            "{} {} here, the environment has {}".format(framework, host_version or "is not", version),
            "Use the Python that has {}=={}, or bundle without --host-packages.".format(framework, version),
        )
    differing = [pin for pin in required if versions.get(pin.split("==")[0]) not in (None, pin.split("==")[1])]
    return ok(name, "the host's own: {} {}; {} other packages differ from the lock file".format(
        framework, host_version, len(differing)))


def host_packages(bundle):
    """Return the environment's packages that the host's Python has, {name: version}."""
    names = [pin.split("==")[0] for pin in bundle["host_packages"]]
    python = find_python(bundle["python"])
    if not names or python is None:
        return {}
    try:
        output = subprocess.check_output([python, "-c", VERSIONS_CODE] + names, stderr=subprocess.DEVNULL, timeout=120)
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(line.split() for line in output.decode("utf-8", "replace").splitlines())


def packages_summary(versions):
    """Return the host's packages as records state them."""
    return ["{} {}".format(name, version) for name, version in sorted(versions.items())]


def without_local_version(version):
    """Return a version without its local version label, such as +cu130 (PEP 440)."""
    return version.split("+")[0]
