"""NVRTC finds its built-in functions in the folders of a framework's packages.

cuInit loads libnvrtc-builtins from the folder named site-packages in which a loaded library lies.
"""

import _queue
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, sys
ctypes.CDLL(sys.argv[2])
assert ctypes.CDLL(sys.argv[1]).cuInit(0) == 0
print("libnvrtc-builtins" in open("/proc/self/maps").read())
"""


@pytest.mark.parametrize(("folder", "loaded"), [("site-packages", "True"), ("packages", "False")])
def test_built_in_functions_are_loaded_beside_the_framework(device, tmp_path, folder, loaded):
    framework = tmp_path / folder / "framework" / "lib" / "libframework.so"
    builtins = tmp_path / folder / "nvidia" / "cu13" / "lib" / "libnvrtc-builtins.so.13.0"
    for file in (framework, builtins):
        file.parent.mkdir(parents=True)
        shutil.copy(_queue.__file__, file)  # an extension of Python, as any shared library will do
    command = [sys.executable, "-S", "-c", PROGRAM, str(Path(device.library)), str(framework)]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.stdout.strip() == loaded, process.stderr
