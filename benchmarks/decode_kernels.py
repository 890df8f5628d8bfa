"""The number of a library's kernels that the virtual GPU can decode.

    python benchmarks/decode_kernels.py LIBRARY...  [CAPABILITY: 90]

Every container of GPU code in the files is loaded as a driver would load it, and every kernel of its PTX is decoded.
Prints the numbers of decoded and of all kernels, and the reasons why kernels were refused.  Nothing is run.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vgpu"))
import build as builder

MAGIC = b"\x50\xed\x55\xba"
WITHOUT_PTX, REFUSED = "a container without PTX for this device", "a container refused as a whole: "


def containers(data: mmap.mmap):
    """Yield the offset of each container: magic number, version, size of the header, length of the content."""
    offset = data.find(MAGIC)
    while offset >= 0:
        header, length = (
            int.from_bytes(data[offset + 6 : offset + 8], "little"),
            int.from_bytes(data[offset + 8 : offset + 16], "little"),
        )
        is_plausible = header == 16 and 0 < length <= len(data) - offset
        if is_plausible:
            yield offset
        offset = data.find(MAGIC, offset + (header + length if is_plausible else 4))


class Driver:
    """The functions of the virtual GPU's library that load modules."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL(str(builder.build(builder.cache()) / "libcuda.so.1"))
        self.cuda.vgpu_last_error.restype = ctypes.c_char_p

    def reasons(self, image: int) -> list[str]:
        """Return for each kernel of a container why it is refused; an empty text if it is decoded."""
        module, count = ctypes.c_void_p(), ctypes.c_uint()
        if self.cuda.cuModuleLoadData(ctypes.byref(module), ctypes.c_void_p(image)):
            return [REFUSED + self.fault()]
        self.cuda.cuModuleGetFunctionCount(ctypes.byref(count), module)
        functions = (ctypes.c_void_p * count.value)()
        self.cuda.cuModuleEnumerateFunctions(functions, count, module)
        kernel_reasons = [self.reason(function) for function in functions] or [WITHOUT_PTX]
        self.cuda.cuModuleUnload(module)
        return kernel_reasons

    def reason(self, function: int) -> str:
        """Return why a kernel is refused: a question for one of its attributes makes the library decode it."""
        threads = ctypes.c_int()
        return self.fault() if self.cuda.cuFuncGetAttribute(ctypes.byref(threads), 0, ctypes.c_void_p(function)) else ""

    def fault(self) -> str:
        return re.sub(r"^.*?line \d+: ", "", self.cuda.vgpu_last_error().decode())


def report(driver: Driver, path: str) -> None:
    """Decode the kernels of one file, and print the counts."""
    start, reasons = time.process_time(), Counter()
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    first = ctypes.addressof(ctypes.c_char.from_buffer(data))
    for offset in containers(data):
        reasons.update(driver.reasons(first + offset))
    seconds = time.process_time() - start
    kernels = sum(count for reason, count in reasons.items() if not reason.startswith((WITHOUT_PTX, REFUSED)))
    print(f"{Path(path).name}: {reasons.pop('', 0):,} of {kernels:,} kernels decoded in {seconds:.0f} s of CPU")
    for reason, count in reasons.most_common():
        print(f"{count:7,}  {reason}")


def main() -> int:
    paths = [argument for argument in sys.argv[1:] if not argument.isdigit()]
    os.environ["VGPU_COMPUTE_CAPABILITY"] = next((argument for argument in sys.argv[1:] if argument.isdigit()), "90")
    driver = Driver()
    for path in paths:
        report(driver, path)
    return 0 if paths else 2


if __name__ == "__main__":
    sys.exit(main())
