"""Damaged machine code: load, decode and run mutants of a cubin, each in a child of its own.

Usage: python sass_mutants.py LIBRARY FILE FROM TO     FILE: a cubin; mutants of the seeds FROM to TO - 1.
Prints each mutant that ended its process, or that did not end; then how many were refused and ran.
"""

import ctypes
import os
import random
import sys
from collections import Counter

import numpy as np
from child_process import in_child

SECONDS = 20  # of a mutant
WORDS = 64
REFUSED, RAN, IDLE = 10, 11, 12  # exit statuses: 1 is a sanitizer's
ENDS = {REFUSED: "refused", RAN: "ran", IDLE: "had no kernel that ran"}


def mutant(image, seed):
    """Bytes changed anywhere, instructions exchanged or copied, or the end cut off."""
    chosen, made = random.Random(seed), bytearray(image)
    kind = chosen.randrange(4)
    for _ in range(chosen.randint(1, 8)):
        at = chosen.randrange(len(made))
        if kind == 0:
            made[at] = chosen.randrange(256)
        elif kind == 1:
            made[at] ^= 1 << chosen.randrange(8)
        else:
            to, line = chosen.randrange(len(made)) // 16 * 16, at // 16 * 16
            made[to : to + 16] = made[line : line + 16].ljust(16, b"\0")
    return bytes(made[: chosen.randrange(len(made))]) if chosen.random() < 0.1 else bytes(made)


def run(cuda, image):
    """How far it came: REFUSED, RAN or IDLE."""
    module, context, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
    cuda.cuInit(0)
    cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
    held = ctypes.create_string_buffer(image, len(image))
    if cuda.cuModuleLoadData(ctypes.byref(module), held):
        return REFUSED
    cuda.cuModuleGetFunctionCount(ctypes.byref(count), module)
    functions = (ctypes.c_void_p * count.value)()
    cuda.cuModuleEnumerateFunctions(functions, count, module)
    at, given = ctypes.c_uint64(), np.arange(WORDS, dtype=np.uint32)
    cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(given.nbytes))
    cuda.cuMemcpyHtoD_v2(at, given.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(given.nbytes))
    pointers = (ctypes.c_void_p * 3)(ctypes.addressof(at), ctypes.addressof(at), ctypes.addressof(ctypes.c_int(WORDS)))
    ran = 0
    for function in random.Random(len(image)).sample(list(functions), len(functions)):
        name = ctypes.c_char_p()
        if cuda.cuFuncGetParamInfo(ctypes.c_void_p(function), ctypes.c_size_t(3), None, None) == 0:
            continue  # damaged: it takes more than there is
        if cuda.cuFuncGetParamInfo(ctypes.c_void_p(function), ctypes.c_size_t(2), None, None):
            continue
        cuda.cuFuncGetName(ctypes.byref(name), ctypes.c_void_p(function))
        ran += cuda.cuLaunchKernel(ctypes.c_void_p(function), 2, 1, 1, 32, 1, 1, 256, None, pointers, None) == 0
    return RAN if ran else IDLE


def main():
    library, path, first, last = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    os.environ.update(VGPU_COMPUTE_CAPABILITY="80", VGPU_MAX_INSTRUCTIONS="200000")
    with open(path, "rb") as file:
        image = file.read()
    ends = Counter()
    for seed in range(first, last):
        image_of_seed = mutant(image, seed)
        status = in_child(lambda data=image_of_seed: run(ctypes.CDLL(library), data), SECONDS)
        end = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else ENDS.get(os.WEXITSTATUS(status), "died")
        if end not in ENDS.values():
            print(f"seed {seed}: {end}")
        ends[end] += 1
    print(", ".join(f"{count} {end}" for end, count in sorted(ends.items())))
    return int(not set(ends) <= set(ENDS.values()))


if __name__ == "__main__":
    sys.exit(main())
