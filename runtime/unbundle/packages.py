"""Packages that the host has itself, where the bundle brings none."""

import subprocess

from tfdet_common.interpreters import find_python
from unbundle.check import missing, ok

ASK = """
import sys
from importlib import metadata
for name in sys.argv[1:]:
    try:
        print(name, metadata.version(name))
    except metadata.PackageNotFoundError:
        pass
"""


def check_host_packages(bundle):
    """The framework has to be the one that the environment means; of the others records tell."""
    name, wanted = "packages", bundle["host_packages"]
    if not wanted:
        return ok(name, "all in the bundle")
    framework, version = wanted[0].split("==")
    found = host_packages(bundle)
    here = found.get(framework)
    if here is None or plain(here) != version:
        return missing(
            name,
            3,
            "{} {} here, the environment has {}".format(framework, here or "is not", version),
            "Call the Python that has {}=={}, or bundle without --host-packages.".format(framework, version),
        )
    others = [one for one in wanted if found.get(one.split("==")[0]) not in (None, one.split("==")[1])]
    return ok(name, "the host's own: {} {}; {} others are not of the versions that are locked".format(
        framework, here, len(others)))


def host_packages(bundle):
    """{name: version} of what the host's Python has of what the environment is made of."""
    names = [one.split("==")[0] for one in bundle["host_packages"]]
    python = find_python(bundle["python"])
    if not names or python is None:
        return {}
    try:
        said = subprocess.check_output([python, "-c", ASK] + names, stderr=subprocess.DEVNULL, timeout=120)
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(line.split() for line in said.decode("utf-8", "replace").splitlines())


def said_of_packages(found):
    """For records."""
    return ["{} {}".format(name, version) for name, version in sorted(found.items())]


def plain(version):
    """Without the label, which says how it was built."""
    return version.split("+")[0]
