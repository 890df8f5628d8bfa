"""The run of the suite of the unpacked bundle.

The probe (python -m tfdet_probe) executes the cases of the suite that the plan names, and writes the records.
"""

import contextlib
import glob
import json
import os
import signal
import subprocess
import tempfile
import time

from tfdet_common.defaults import BUNDLE_GPU_DEFAULTS, RUN_DEFAULTS
from tfdet_common.interpreters import find_python
from unbundle.errors import BundleError
from unbundle.libraries import host_links
from unbundle.packages import host_packages, packages_summary

# Variables of the caller's shell that the suite receives.
FORWARDED_VARIABLES = (
    "PATH", "HOME", "LANG", "TMPDIR", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "TF_ENABLE_ONEDNN_OPTS"
)

# Without the current folder on sys.path: a folder called jax there must not shadow JAX.
LAUNCHER_CODE = ("import runpy, sys; sys.path[:] = [folder for folder in sys.path if folder]; {}"
         "runpy.run_module('tfdet_probe', run_name='__main__', alter_sys=True)")
# Without the host's site-packages, so that only the bundle's packages run.  TensorFlow 1.x reads site.USER_SITE.
BUNDLE_SITE_CODE = LAUNCHER_CODE.format("import site; site.USER_SITE = sys.argv.pop(1); ")


def run(bundle, target, options, started):
    """Run the suite, and return the probe's exit code.

    Args:
        bundle: the Bundle.
        target: the folder that it is unpacked in.
        options: the parsed command line.
        started: when the command started, as time.time() gives it.

    Returns:
        The probe's exit code.
    """
    python, site = find_python(bundle["python"]), os.path.join(target, "site")
    packages = host_packages(bundle)
    with host_links(bundle, options.device) as (links, from_host):
        with facts_file(bundle, from_host + packages_summary(packages)) as facts:
            if packages:
                command = [python, "-s", "-c", LAUNCHER_CODE.format("")]
            else:
                command = [python, "-S", "-s", "-c", BUNDLE_SITE_CODE, site]
            command += ["--plan", os.path.join(target, "plan.json"), "--suite", os.path.join(target, "suite")]
            command += ["--out", os.path.abspath(options.out)]
            command += probe_arguments(options, started) + ["--exit-with", str(os.getpid())]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment(target, links, facts))
            return wait(process)


def probe_arguments(options, started):
    defaults = BUNDLE_GPU_DEFAULTS if options.device == "gpu" else RUN_DEFAULTS
    arguments = [
        "--device",
        options.device,
        "--timeout",
        str(options.timeout),
        "--repeats",
        str(options.repeats or defaults.repeats),
        "--processes",
        str(options.processes or defaults.processes),
        "--memory",
        str(options.memory or defaults.mebibytes),
    ]
    for source in options.source or []:
        arguments += ["--source", source]
    for solution in options.solution or []:
        arguments += ["--solution", solution]
    for case in options.case or []:
        arguments += ["--case", case]
    if options.no_contention:
        arguments.append("--no-contention")
    if options.time_budget:
        arguments += ["--time-budget", "{:.3f}".format(max(0.001, options.time_budget - (time.time() - started) / 60))]
    return arguments


def environment(target, links, facts):
    site = os.path.join(target, "site")
    environ = {name: os.environ[name] for name in FORWARDED_VARIABLES if name in os.environ}
    libraries = links + sorted(glob.glob(os.path.join(glob.escape(site), "nvidia", "*", "lib")))
    libraries += [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if folder]
    environ.update(
        PYTHONPATH=os.pathsep.join([os.path.join(target, "runtime"), site]), TFDET_ENGINE="bundle", TFDET_BUNDLE=facts
    )
    if libraries:
        environ["LD_LIBRARY_PATH"] = os.pathsep.join(libraries)
    compiler = os.path.join(site, "nvidia", "cuda_nvcc")
    if os.path.isdir(compiler):  # it contains XLA's device library
        environ["XLA_FLAGS"] = "--xla_gpu_cuda_data_dir=" + compiler
    return environ


@contextlib.contextmanager
def facts_file(bundle, from_host):
    """Create a temporary file with what every record states of the bundle; yield its path, for TFDET_BUNDLE."""
    facts = {name: bundle[name] for name in ("compute_capability", "trimmed", "stubbed", "left_out")}
    facts.update(manifest=bundle["checksum"], from_host=from_host)
    handle, path = tempfile.mkstemp(prefix="tfdet-bundle-", suffix=".json")
    try:
        with os.fdopen(handle, "w") as out:
            json.dump(facts, out)
        yield path
    finally:
        os.unlink(path)


def wait(process):
    """Wait for the probe and return its exit code; on Ctrl-C wait until it has ended its children."""
    try:
        code = process.wait()
    except BaseException as error:
        if not isinstance(error, KeyboardInterrupt):  # a terminal sends Ctrl-C to the probe, too
            process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
        raise
    if code < 0:
        raise BundleError(3, "signal {} ended the suite".format(-code), "Run again: it resumes where it stopped.")
    return code
