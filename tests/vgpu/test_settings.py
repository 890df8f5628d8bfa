"""Invalid environment variables are refused when a program starts to use the device."""

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


def start_program(device, name, value):
    """Run a program that initializes the device with the variable."""
    program = "import ctypes, sys; sys.exit(10 + ctypes.CDLL(sys.argv[1]).cuInit(0))"
    command = [sys.executable, "-S", "-c", program, device.library]
    environment = {**os.environ, name: value}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_invalid_settings_are_refused(device, name, value):
    process = start_program(device, name, value)
    assert process.returncode == 2
    assert name in process.stderr
    assert value.rpartition("@")[2] in process.stderr
    assert len(process.stderr.splitlines()) == 1


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in RIGHT.items() for value in values])
def test_valid_settings_are_accepted(device, name, value):
    process = start_program(device, name, value)
    assert (process.returncode, process.stderr) == (10, "")
