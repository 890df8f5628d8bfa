"""The command `doctor`: check each requirement of a run and print the results."""

import os
import shutil
import sys

from unbundle.check import missing, ok
from unbundle.errors import GIB, BundleError
from unbundle.gpu import check_driver, check_gpu
from unbundle.host import check_cpu, check_libc, check_memory, check_python
from unbundle.libraries import check_host_libraries
from unbundle.packages import check_host_packages
from unbundle.smi import query_gpus
from unbundle.unpack import check_disk_space, is_unpacked


def checks(bundle, device):
    """Check what the bundle requires of this host, and yield a Check for each requirement."""
    yield check_cpu()
    yield check_libc(bundle)
    yield check_python(bundle)
    yield check_memory(device)
    yield check_host_packages(bundle)
    if device == "gpu":
        nvidia = query_gpus()
        yield check_driver(bundle, nvidia)
        yield check_gpu(bundle, nvidia)
        yield check_host_libraries(bundle)


def doctor(bundle, device, target):
    """Print all checks; return the exit code of the first that failed, or 0."""
    sys.stdout.write(
        "{} for CPython {}, made for the {}{}\n".format(
            bundle["environment"],
            bundle["python"],
            bundle["device"],
            ", compute capability " + bundle["compute_capability"] if bundle["compute_capability"] else "",
        )
    )
    results = [check_parts(bundle, target), check_disk(bundle, target)] + list(checks(bundle, device))
    for check in results:
        sys.stdout.write("{:8} {:15} {}\n".format(check.state, check.name, check.detail))
        if check.advice:
            sys.stdout.write("{:24} {}\n".format("", check.advice))
    return next((check.code for check in results if check.code), 0)


def check_parts(bundle, target):
    if is_unpacked(bundle, target):
        return ok("parts", "unpacked already, in {}".format(target))
    try:
        bundle.check_parts()
    except BundleError as error:
        return missing("parts", error.code, error.cause, error.advice)
    return ok("parts", "all {} are intact".format(len(bundle["parts"])))


def check_disk(bundle, target):
    folder = os.path.abspath(target)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    try:
        if not is_unpacked(bundle, target):
            check_disk_space(bundle, folder)
    except BundleError as error:
        return missing("disk", error.code, error.cause, error.advice)
    return ok("disk", "{:.1f} GiB free".format(shutil.disk_usage(folder).free / GIB))
