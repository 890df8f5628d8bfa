"""Random CUDA C, compiled by nvcc for the virtual GPU, beside what the host's compiler makes of it."""

import ctypes
import os
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np

NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
THREADS = 64
# No operation is undefined: shifts are masked, divisors are odd, and signed sums are those of unsigned numbers.
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


def expression(choose: random.Random, depth: int) -> str:
    if depth == 0:
        return choose.choice(["a", "b", "c", "r", f"{choose.getrandbits(choose.choice([4, 16, 33, 64]))}ull"])
    pattern = choose.choice(BINARY)
    return pattern.format(a=expression(choose, depth - 1), b=expression(choose, depth - 1))


def statement(choose: random.Random, k: int) -> str:
    one, other = expression(choose, 2), expression(choose, 1)
    return choose.choice(
        [
            f"r ^= {one};",
            f"if ({other} & 4) r += {one}; else r -= {other};",
            f"for (int i{k} = 0; i{k} < (int)({other} & 7); i{k}++) r = r * 31 + ({one}) + i{k};",
            f"switch ({other} & 3) {{ case 0: r += 7; break; case 1: r ^= {one}; "
            "case 2: r -= c; break; default: r *= 9; }",
            f"{{ u64 t[8]; for (int j = 0; j < 8; j++) t[j] = {other} + j; r ^= t[{one} & 7]; }}",
            f"{{ Pair p = {{{one}, (u32){other}}}; r += p.x ^ p.y; }}",
            f"r = twist({one}, (int)(r & 3));",
        ]
    )


def function(choose: random.Random, name: str) -> str:
    body = " ".join(statement(choose, k) for k in range(choose.randint(2, 5)))
    return f"HD u64 {name}(u64 a, u64 b, u64 c) {{ u64 r = 1; {body} return r; }}\n"


def sources(seed: int, count: int) -> str:
    choose = random.Random(seed)
    text = "".join(function(choose, f"f{k}") for k in range(count))
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
    """The functions that give something else, with their texts."""
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
        subprocess.run([str(word) for word in command], check=True, capture_output=True)
    given = np.random.default_rng(seed).integers(0, 1 << 64, 3 * THREADS, np.uint64)
    given >>= np.random.default_rng(seed + 1).integers(0, 64, 3 * THREADS).astype(np.uint64)
    wanted = np.zeros(count * THREADS, np.uint64)
    run = ctypes.CDLL(str(folder / "host.so")).host
    run(given.ctypes.data_as(ctypes.c_void_p), wanted.ctypes.data_as(ctypes.c_void_p))
    result, (_, made) = device.run((folder / "k.ptx").read_text(), [given, np.zeros_like(wanted)], block=THREADS)
    if result:
        return [f"CUDA's error {result}"]
    lines = [line for line in text.split("\n") if line.startswith("HD u64 f")]
    wrong = np.nonzero((made != wanted).reshape(count, THREADS).any(axis=1))[0]
    return [f"seed {seed}: {lines[k]}" for k in wrong]
