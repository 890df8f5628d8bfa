"""A variable of the environment that says what it cannot is refused when a program begins to use the device."""

import os
import subprocess
import sys

import pytest

WRONG = {
    "VGPU_SCHEDULE": ["WRONG", "random:1@", "lanes@", "random:1@0:5,"],
    "VGPU_COMPUTE_CAPABILITY": ["7.0", "sm_70", "-70", "7", "700", " 70", "0x46"],
    "VGPU_MEMORY_MIB": ["0", "2G", "-1", "1.5", "99999999999999999999", "1048577"],
    "VGPU_MULTIPROCESSORS": ["0", "1025", "-1", "two", "1.5"],
    "VGPU_PLACEMENT": ["-1", "one", "0x1", "99999999999999999999"],
    "VGPU_MAX_INSTRUCTIONS": ["many", "-1", "1e9", "10 "],
    "VGPU_LOG": ["yes", "2", "true"],
    "VGPU_CHECK": [
        "race",
        "racecheck,",
        ",racecheck",
        "racecheck,,memcheck",
        "racecheck memcheck",
        "Races",
        "initialized",
    ],
    "VGPU_CPU_FALLBACKS": ["cuda", "cublas,", "cublas cudnn", "ALL", "cufft"],
    "VGPU_MEMORY_TRACE": ["file", "0:", ":file", "-1:file", "0x1:file"],
}
RIGHT = {
    "VGPU_SCHEDULE": ["atomics:1@0:3", ""],
    "VGPU_COMPUTE_CAPABILITY": ["70", "120", ""],
    "VGPU_MEMORY_MIB": ["1", "64"],
    "VGPU_MULTIPROCESSORS": ["1", "132", "1024", ""],
    "VGPU_PLACEMENT": ["0", "7", ""],
    "VGPU_MAX_INSTRUCTIONS": ["0", "200000"],
    "VGPU_LOG": ["0", "1"],
    "VGPU_CHECK": ["racecheck", "memcheck,initcheck", "racecheck,racecheck"],
    "VGPU_CPU_FALLBACKS": ["all", "cudnn,cublas", "cublas"],
    "VGPU_MEMORY_TRACE": ["0:/dev/null"],
}


def begun(device, name, value):
    program = "import ctypes, sys; sys.exit(10 + ctypes.CDLL(sys.argv[1]).cuInit(0))"
    command = [sys.executable, "-S", "-c", program, device.library]
    environment = {**os.environ, name: value}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, all_ in WRONG.items() for value in all_])
def test_what_says_nothing_is_refused(device, name, value):
    done = begun(device, name, value)
    assert done.returncode == 2
    assert name in done.stderr
    assert value.rpartition("@")[2] in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, all_ in RIGHT.items() for value in all_])
def test_what_says_something_is_taken(device, name, value):
    done = begun(device, name, value)
    assert (done.returncode, done.stderr) == (10, "")
