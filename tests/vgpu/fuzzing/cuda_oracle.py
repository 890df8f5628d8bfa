"""A comparison of random CUDA C functions: compiled by nvcc for the virtual GPU, and by the host compiler."""

import ctypes
import os
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np

NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
THREADS = 64
# No operation is undefined: shifts are masked, divisors are odd, and signed sums are computed as unsigned.
HEAD = """typedef unsigned long long u64; typedef long long s64; typedef unsigned int u32; typedef int s32;
typedef unsigned __int128 u128; typedef __int128 s128;
struct Pair { u64 x; u32 y; };
HD u64 twist(u64 a, int depth) { return depth ? twist(a * 3 + depth, depth - 1) ^ (a >> 7) : a; }
"""
BINARY = [
    "({a} + {b})", "({a} - {b})", "({a} * {b})", "({a} / ({b} | 1))", "({a} % ({b} | 1))", "({a} ^ {b})",
    "({a} & {b})", "({a} << ({b} & 63))", "({a} >> ({b} & 63))", "(u64)((s64){a} >> ({b} & 63))",
    "(u64)((s64)({a} >> 1) / (s64)(({b} >> 1) | 1))", "(u64)((s64)({a} >> 1) % (s64)(({b} >> 1) | 1))",
    "(u64)((((u128){a} << 64 | {b}) / (((u128){b} << 32) | 1)) >> 8)",
    "(u64)(((u128){a} << 64 | {b}) % (({b} >> 9) | 1))",
    "(u64)((((s128)(s64){a} << 40) - (s128){b}) / (s128)(s64)(({b} >> 1) | 1))", "(u64)(((u128){a} * {b}) >> 64)",
    "(u64)((u32){a} / ((u32){b} | 1))", "(u64)(s64)((s32)((u32){a} >> 1) % (s32)(((u32){b} >> 1) | 1))",
    "({a} < {b} ? {a} : {b} * 5)", "(u64)((s64){a} < (s64){b})", "(u64)(unsigned char){a} + (u64)(short){b}",
    "(u64)((double)({a} >> 12) / (double)(({b} >> 12) | 1) * 1024.0)", "(u64)((float)({a} >> 42) * (float)({b} >> 44))",
]  # fmt: skip


def expression(rng: random.Random, depth: int) -> str:
    """Return a random C expression of a, b, c and r."""
    if depth == 0:
        return rng.choice(["a", "b", "c", "r", f"{rng.getrandbits(rng.choice([4, 16, 33, 64]))}ull"])
    pattern = rng.choice(BINARY)
    return pattern.format(a=expression(rng, depth - 1), b=expression(rng, depth - 1))


def statement(rng: random.Random, k: int) -> str:
    """Return a random C statement."""
    first, second = expression(rng, 2), expression(rng, 1)
    return rng.choice(
        [
            f"r ^= {first};",
            f"if ({second} & 4) r += {first}; else r -= {second};",
            f"for (int i{k} = 0; i{k} < (int)({second} & 7); i{k}++) r = r * 31 + ({first}) + i{k};",
            f"switch ({second} & 3) {{ case 0: r += 7; break; case 1: r ^= {first}; "
            "case 2: r -= c; break; default: r *= 9; }",
            f"{{ u64 t[8]; for (int j = 0; j < 8; j++) t[j] = {second} + j; r ^= t[{first} & 7]; }}",
            f"{{ Pair p = {{{first}, (u32){second}}}; r += p.x ^ p.y; }}",
            f"r = twist({first}, (int)(r & 3));",
        ]
    )


def function(rng: random.Random, name: str) -> str:
    """Return a random C function."""
    body = " ".join(statement(rng, k) for k in range(rng.randint(2, 5)))
    return f"HD u64 {name}(u64 a, u64 b, u64 c) {{ u64 r = 1; {body} return r; }}\n"


def sources(seed: int, count: int) -> str:
    """Return the source of `count` functions, with a kernel and a host function that call them."""
    rng = random.Random(seed)
    text = "".join(function(rng, f"f{k}") for k in range(count))
    calls = "".join(f"out[{k} * n + t] = f{k}(a, b, c); " for k in range(count))
    return f"""{HEAD}{text}
#ifdef __CUDACC__
extern "C" __global__ void k(const u64* in, u64* out) {{
  const int n = {THREADS}, t = threadIdx.x;
#else
extern "C" void host(const u64* in, u64* out) {{
  const int n = {THREADS}; for (int t = 0; t < n; t++) {{
#endif
  u64 a = in[t], b = in[n + t], c = in[2 * n + t]; {calls}
#ifndef __CUDACC__
  }}
#endif
}}
"""


def disagreements(device, seed: int, count: int, folder: Path) -> list[str]:
    """Return the functions whose results differ, as source text."""
    text = sources(seed, count)
    path = folder / "kernel.cu"
    path.write_text(text)
    code = [
        NVCC,
        "-ptx",
        "-arch=sm_90",
        "-fmad=false",
        "-DHD=static __device__ __noinline__",
        "-o",
        folder / "k.ptx",
        path,
    ]
    host = [
        os.environ.get("CXX", "g++"),
        "-x",
        "c++",
        "-O1",
        "-w",
        "-ffp-contract=off",
        "-fPIC",
        "-shared",
        "-DHD=static",
    ]
    for command in (code, [*host, "-o", folder / "host.so", path]):
        subprocess.run([str(argument) for argument in command], check=True, capture_output=True)
    inputs = np.random.default_rng(seed).integers(0, 1 << 64, 3 * THREADS, np.uint64)
    inputs >>= np.random.default_rng(seed + 1).integers(0, 64, 3 * THREADS).astype(np.uint64)
    expected = np.zeros(count * THREADS, np.uint64)
    run = ctypes.CDLL(str(folder / "host.so")).host
    run(inputs.ctypes.data_as(ctypes.c_void_p), expected.ctypes.data_as(ctypes.c_void_p))
    result, (_, results) = device.run((folder / "k.ptx").read_text(), [inputs, np.zeros_like(expected)], block=THREADS)
    if result:
        return [f"CUDA's error {result}"]
    lines = [line for line in text.split("\n") if line.startswith("HD u64 f")]
    wrong = np.nonzero((results != expected).reshape(count, THREADS).any(axis=1))[0]
    return [f"seed {seed}: {lines[k]}" for k in wrong]
