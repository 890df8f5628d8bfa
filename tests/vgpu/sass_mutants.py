"""Damaged machine code: load, decode and run mutants of a cubin, each in a child process of its own.

Usage: python sass_mutants.py LIBRARY FILE FROM TO     FILE: a cubin; mutants of the seeds FROM to TO - 1.
Prints each mutant that ended its process or exceeded its time; then how many were refused and how many ran.
"""

import ctypes
import os
import random
import sys
from collections import Counter

import numpy as np
from child_process import in_child

SECONDS_PER_MUTANT = 20
WORDS = 64
REFUSED, RAN, IDLE = 10, 11, 12  # exit statuses: 1 is a sanitizer's
OUTCOMES = {REFUSED: "refused", RAN: "ran", IDLE: "had no kernel that ran"}


def mutant(image, seed):
    """Return the image with bytes changed, instructions exchanged or copied, or the end cut off."""
    rng, data = random.Random(seed), bytearray(image)
    kind = rng.randrange(4)
    for _ in range(rng.randint(1, 8)):
        index = rng.randrange(len(data))
        if kind == 0:
            data[index] = rng.randrange(256)
        elif kind == 1:
            data[index] ^= 1 << rng.randrange(8)
        else:
            target, line = rng.randrange(len(data)) // 16 * 16, index // 16 * 16
            data[target : target + 16] = data[line : line + 16].ljust(16, b"\0")
    return bytes(data[: rng.randrange(len(data))]) if rng.random() < 0.1 else bytes(data)


def run(cuda, image):
    """Load a cubin and launch its kernels; return REFUSED, RAN or IDLE."""
    module, context, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
    cuda.cuInit(0)
    cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
    buffer = ctypes.create_string_buffer(image, len(image))
    if cuda.cuModuleLoadData(ctypes.byref(module), buffer):
        return REFUSED
    cuda.cuModuleGetFunctionCount(ctypes.byref(count), module)
    functions = (ctypes.c_void_p * count.value)()
    cuda.cuModuleEnumerateFunctions(functions, count, module)
    address, values = ctypes.c_uint64(), np.arange(WORDS, dtype=np.uint32)
    cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(values.nbytes))
    cuda.cuMemcpyHtoD_v2(address, values.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(values.nbytes))
    pointers = (ctypes.c_void_p * 3)(
        ctypes.addressof(address), ctypes.addressof(address), ctypes.addressof(ctypes.c_int(WORDS))
    )
    successful = 0
    for function in random.Random(len(image)).sample(list(functions), len(functions)):
        name = ctypes.c_char_p()
        if cuda.cuFuncGetParamInfo(ctypes.c_void_p(function), ctypes.c_size_t(3), None, None) == 0:
            continue  # damaged: it takes more than there is
        if cuda.cuFuncGetParamInfo(ctypes.c_void_p(function), ctypes.c_size_t(2), None, None):
            continue
        cuda.cuFuncGetName(ctypes.byref(name), ctypes.c_void_p(function))
        successful += cuda.cuLaunchKernel(ctypes.c_void_p(function), 2, 1, 1, 32, 1, 1, 256, None, pointers, None) == 0
    return RAN if successful else IDLE


def main():
    library, path, first, last = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    os.environ.update(VGPU_COMPUTE_CAPABILITY="80", VGPU_MAX_INSTRUCTIONS="200000")
    with open(path, "rb") as file:
        image = file.read()
    ends = Counter()
    for seed in range(first, last):
        damaged = mutant(image, seed)
        status = in_child(lambda data=damaged: run(ctypes.CDLL(library), data), SECONDS_PER_MUTANT)
        end = (
            f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else OUTCOMES.get(os.WEXITSTATUS(status), "died")
        )
        if end not in OUTCOMES.values():
            print(f"seed {seed}: {end}")
        ends[end] += 1
    print(", ".join(f"{count} {end}" for end, count in sorted(ends.items())))
    return int(not set(ends) <= set(OUTCOMES.values()))


if __name__ == "__main__":
    sys.exit(main())
