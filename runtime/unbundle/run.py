"""The suite in the unpacked bundle."""

import contextlib
import glob
import json
import os
import signal
import subprocess
import tempfile
import time

from tfdet_common.defaults import CARRIED_TO_GPU, RUN
from tfdet_common.interpreters import find_python
from unbundle.libraries import host_links
from unbundle.packages import host_packages, said_of_packages
from unbundle.stop import Stop

# What of the caller's shell the suite may see.
PASSED = ("PATH", "HOME", "LANG", "TMPDIR", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "TF_ENABLE_ONEDNN_OPTS")

# A folder called jax where somebody happens to stand is not JAX.
START = ("import runpy, sys; sys.path[:] = [folder for folder in sys.path if folder]; {}"
         "runpy.run_module('tfdet_probe', run_name='__main__', alter_sys=True)")
# Without the host's site-packages: what runs is what the bundle holds.  TensorFlow 1.x asks where packages lie.
OWN_SITE = START.format("import site; site.USER_SITE = sys.argv.pop(1); ")


def run(bundle, target, options, started):
    """The suite in the unpacked bundle; the probe's exit code."""
    python, site = find_python(bundle["python"]), os.path.join(target, "site")
    packages = host_packages(bundle)
    with host_links(bundle, options.device) as (links, from_host):
        with facts_file(bundle, from_host + said_of_packages(packages)) as facts:
            command = [python, "-s", "-c", START.format("")] if packages else [python, "-S", "-s", "-c", OWN_SITE, site]
            command += ["--plan", os.path.join(target, "plan.json"), "--suite", os.path.join(target, "suite")]
            command += ["--out", os.path.abspath(options.out)]
            command += probe_arguments(options, started) + ["--exit-with", str(os.getpid())]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment(target, links, facts))
            return wait(process)


def probe_arguments(options, started):
    usual = CARRIED_TO_GPU if options.device == "gpu" else RUN
    arguments = [
        "--device",
        options.device,
        "--timeout",
        str(options.timeout),
        "--repeats",
        str(options.repeats or usual.repeats),
        "--processes",
        str(options.processes or usual.processes),
        "--memory",
        str(options.memory or usual.mebibytes),
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
    kept = {name: os.environ[name] for name in PASSED if name in os.environ}
    libraries = links + sorted(glob.glob(os.path.join(glob.escape(site), "nvidia", "*", "lib")))
    libraries += [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if folder]
    kept.update(
        PYTHONPATH=os.pathsep.join([os.path.join(target, "runtime"), site]), TFDET_ENGINE="bundle", TFDET_BUNDLE=facts
    )
    if libraries:
        kept["LD_LIBRARY_PATH"] = os.pathsep.join(libraries)
    compiler = os.path.join(site, "nvidia", "cuda_nvcc")
    if os.path.isdir(compiler):  # XLA's device library lies there
        kept["XLA_FLAGS"] = "--xla_gpu_cuda_data_dir=" + compiler
    return kept


@contextlib.contextmanager
def facts_file(bundle, from_host):
    """What every record says of the bundle it was made with."""
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
    """The probe's exit code; on Ctrl-C it ends its children itself, and then we go."""
    try:
        code = process.wait()
    except BaseException as stop:
        if not isinstance(stop, KeyboardInterrupt):  # a terminal's Ctrl-C has reached the probe, too
            process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
        raise
    if code < 0:
        raise Stop(3, "the suite was ended by signal {}".format(-code), "Run again: it goes on where it stopped.")
    return code
