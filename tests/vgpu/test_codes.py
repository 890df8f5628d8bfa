"""vgpu_codes() returns which code launches ran: PTX or machine code."""

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest
from containers import KERNELS, ContainerDevice, Launch
from virtual_device import build, kernel

STORE = kernel("ld.param.u64 %l0, [p0]; st.global.u32 [%l0], 7;", ["p0"]).replace("sm_90", "sm_80")


@pytest.mark.parametrize(("chosen", "told"), [("sass", ["", "sass", "ptx sass"]), ("ptx", ["", "ptx", "ptx"])])
def test_the_codes_that_launches_ran_are_reported(chosen, told):
    """It is called before any launch, after one of a container with both, and after one of PTX alone."""
    environ = {**os.environ, "VGPU_CODE": chosen, "VGPU_COMPUTE_CAPABILITY": "80"}
    command = [sys.executable, __file__, build()]
    process = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120)
    assert (process.stdout.splitlines(), process.returncode) == (told, 0), process.stderr


def main(library):
    """Launch kernels of both kinds, and print vgpu_codes() after each."""
    device = ContainerDevice(library, (KERNELS / "elementwise.fatbin").read_bytes())
    device.cuda.vgpu_codes.restype = ctypes.c_char_p

    def tell():
        print(" ".join(device.cuda.vgpu_codes().decode("ascii").split()), flush=True)

    tell()
    numbers = np.zeros(32, np.uint32)
    assert device.launch(Launch("add_u32", 1, 32, [numbers, numbers, numbers, 32]))[0] == 0
    tell()
    device.run(STORE, [numbers])
    tell()


if __name__ == "__main__":
    main(sys.argv[1])
