"""Calls every entry point of the driver and the runtime with null pointers, sizes and handles that are none.

It does so in a child process, made anew where a call ends it:
`python tests/vgpu/entry_point_fuzz.py LIBRARY SEED ROUNDS` names such calls.
Every pointer that is not null leads to zeros, so that a call may write where it likes, as a card's driver does;
the address is small enough to be a sensible size or count, too.
"""

import ctypes
import os
import random
import re
import subprocess
import sys

AT, SIZE = 0x10000, 16 << 20
VALUES = [0, AT, AT + 4096]
# They call what they are given, later, or end the process by what they are.
WITH_FUNCTIONS = {"cuLaunchHostFunc", "cuStreamAddCallback", "cudaLaunchHostFunc", "cudaStreamAddCallback"}


def entry_points(library):
    told = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    names = {line.split()[-1] for line in told.splitlines()}
    return sorted(name for name in names if re.match(r"cu(da)?[A-Z]", name))


def map_zeros():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    at = libc.mmap(
        ctypes.c_void_p(AT), ctypes.c_size_t(SIZE), 3, 0x32, -1, ctypes.c_size_t(0)
    )  # private, fixed, anonymous
    assert at == AT, "no memory where it is wanted"


def calls(library, seed, rounds):
    """(name, arguments): of each call nothing but zeros first."""
    draw = random.Random(seed)
    for name in entry_points(library):
        for turn in range(1 if name.removesuffix("_ptsz") in WITH_FUNCTIONS else rounds):
            yield name, [draw.choice(VALUES) if turn else 0 for _ in range(12)]


def call_from(library, wanted, first, told):
    cuda, context = ctypes.CDLL(library), ctypes.c_void_p()
    cuda.cuInit(0), cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
    map_zeros()
    for number, (name, arguments) in enumerate(wanted[first:], first):
        os.pwrite(told, number.to_bytes(8, "little"), 0)
        ctypes.memset(AT, 0, 1 << 16)
        getattr(cuda, name)(*[ctypes.c_uint64(one) for one in arguments])
    os.pwrite(told, len(wanted).to_bytes(8, "little"), 0)


def fuzz(library, seed, rounds):
    """The calls, with their arguments, that ended the process."""
    wanted, told, first, ended = list(calls(library, seed, rounds)), os.memfd_create("told"), 0, []
    while first < len(wanted):
        child = os.fork()
        if not child:
            try:
                call_from(library, wanted, first, told)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        at = int.from_bytes(os.pread(told, 8, 0), "little")
        if at < len(wanted):
            ended.append(wanted[at])
        first = at + 1
    return ended


if __name__ == "__main__":
    for name, arguments in fuzz(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])):
        print(name, *map(hex, arguments))
