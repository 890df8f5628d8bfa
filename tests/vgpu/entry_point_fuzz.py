"""A fuzzer that calls every entry point of the driver and the runtime with null pointers, sizes and invalid handles.

`python tests/vgpu/entry_point_fuzz.py LIBRARY SEED ROUNDS` prints the calls that end the process.
The calls run in a child process, which is started again after each call that ends it.
Every pointer that is not null leads to zeros that a call may overwrite, as a card's driver does;
the address is small enough to be a sensible size or count, too.
"""

import ctypes
import os
import random
import re
import subprocess
import sys

ADDRESS, SIZE = 0x10000, 16 << 20
VALUES = [0, ADDRESS, ADDRESS + 4096]
# They call their arguments as functions, now or later.
WITH_FUNCTIONS = {"cuLaunchHostFunc", "cuStreamAddCallback", "cudaLaunchHostFunc", "cudaStreamAddCallback"}


def entry_points(library):
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    names = {line.split()[-1] for line in symbols.splitlines()}
    return sorted(name for name in names if re.match(r"cu(da)?[A-Z]", name))


def map_zeros():
    """Map SIZE bytes of zeros at the fixed address."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    address = libc.mmap(
        ctypes.c_void_p(ADDRESS), ctypes.c_size_t(SIZE), 3, 0x32, -1, ctypes.c_size_t(0)
    )  # private, fixed, anonymous
    assert address == ADDRESS, "no memory where it is wanted"


def calls(library, seed, rounds):
    """Yield (name, arguments) of calls; the first call of each entry point has only zeros."""
    rng = random.Random(seed)
    for name in entry_points(library):
        for turn in range(1 if name.removesuffix("_ptsz") in WITH_FUNCTIONS else rounds):
            yield name, [rng.choice(VALUES) if turn else 0 for _ in range(12)]


def call_from(library, all_calls, first, progress):
    """Make the calls from index `first` on, and write the index of the current call to the file `progress`."""
    cuda, context = ctypes.CDLL(library), ctypes.c_void_p()
    cuda.cuInit(0), cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
    map_zeros()
    for number, (name, arguments) in enumerate(all_calls[first:], first):
        os.pwrite(progress, number.to_bytes(8, "little"), 0)
        ctypes.memset(ADDRESS, 0, 1 << 16)
        getattr(cuda, name)(*[ctypes.c_uint64(argument) for argument in arguments])
    os.pwrite(progress, len(all_calls).to_bytes(8, "little"), 0)


def fuzz(library, seed, rounds):
    """Return the calls, with their arguments, that ended the process."""
    all_calls, progress, first, ended = list(calls(library, seed, rounds)), os.memfd_create("told"), 0, []
    while first < len(all_calls):
        child = os.fork()
        if not child:
            try:
                call_from(library, all_calls, first, progress)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        last = int.from_bytes(os.pread(progress, 8, 0), "little")
        if last < len(all_calls):
            ended.append(all_calls[last])
        first = last + 1
    return ended


if __name__ == "__main__":
    for name, arguments in fuzz(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])):
        print(name, *map(hex, arguments))
