"""Damaged PTX texts and containers, and their outcomes: python tests/vgpu/mutants.py FIRST LAST

Prints the outcome of each mutant.  Each runs in a child process, which it may crash.
"""

import ctypes
import os
import random
import re
import struct
import sys

from child_process import in_child
from virtual_device import HEAD, Device, build, kernel

REFUSED = 10  # the child's exit status: a sanitizer that finds something ends it with 1
VALID = [
    kernel(
        """ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 8; add.u64 %l0, %l0, %l1; ld.global.v2.f32 {%r1, %r2}, [%l0];
    add.rn.f32 %r1, %r1, %r2; setp.lt.and.f32 %p0|%p1, %r1, 0f3F800000, %p2; @!%p0 bra out; cvt.rzi.s32.f32 %r3, %r1;
    shfl.sync.bfly.b32 %r4|%p3, %r3, 1, 31, 0xffffffff; vote.sync.ballot.b32 %r5, %p3, -1; bar.sync 0;
    out: st.global.u32 [%l0+4], %r1;""",
        ["p0"],
    ),
    kernel(
        """.shared .align 8 .b8 s[64]; .local .align 4 .b8 own[16]; mov.u32 %r1, s; st.shared.u32 [%r1+4], %i;
    atom.shared.cas.b32 %r2, [s], 0, 1; red.global.add.f32 [total], 0f3F800000; mov.b64 {%r3, %r4}, %l0;
    cvta.local.u64 %l1, %l2;
    bfe.u32 %r5, %r1, 3, 4; prmt.b32 %r6, %r1, %r2, 0x3210; lop3.b32 %r6, %r1, %r2, %r3, 0x96;
    bar.red.or.pred %p1, 0, %p2;""",
        ["p0"],
        head=".global .align 4 .f32 total = 0f00000000;\n.const .align 4 .u32 table[3] = {1, 2, 3};\n",
    ),
    kernel(
        """{ .param .b32 a; .param .b32 b; st.param.b32 [a], %i; call.uni (b), twice, (a); ld.param.b32 %r1, [b]; }
    mov.u64 %l0, twice; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;
    way: .callprototype (.param .b32 _) _ (.param .b32 _); call (b), %l0, (a), way; ld.param.b32 %r1, [b]; }
    targets: .branchtargets one, two; and.b32 %r2, %i, 1; brx.idx %r2, targets; one: mad.lo.s32 %r1, %r1, 3, 1;
    two: ret;""",
        ["p0"],
        head=".func (.param .b32 out) twice(.param .b32 in)\n{ .reg .b32 %a; ld.param.b32 %a, [in]; add.u32 %a, %a, %a;"
        " st.param.b32 [out], %a; ret; }\n",
    ),
    kernel(
        """ld.param.u64 %l0, [p0]; @!%p2 bra out; tex.2d.v4.f32.f32 {%r1, _, %r3, %r4}|%p1, [%l0, {%r1, %r2}];
    tld4.g.2d.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%l0, {%r1, 0f3F800000}]; txq.width.b32 %r5, [%l0];
    suld.b.a2d.v2.b32.zero {%r1, %r2}, [%l1, {%r0, %r1, %r2, %r2}]; sust.b.1d.b8.clamp [%l1, {4}], {%h1}; out: ret;""",
        ["p0"],
    ),
]
REPLACEMENTS = (
    "; { } [ ] ( ) , | ! - @ : [[ {} %r1 %p1 %l0 _ 0 -1 0x 0f3F 7.5 4294967296 99999999999999999999 .align .shared "
    '.b128 .pred [1073741824] <1073741824> \0 \x80 " /* // s a p0 total {%r1} %tid.x WARP_SZ .v4 .f16x2 exit call '
    "<4000000000> .local .weak twice .callprototype ret"
)


def mutate_text(seed):
    """Return a valid text with one to four tokens removed, doubled, exchanged, replaced or damaged, or cut off."""
    rng = random.Random(seed)
    text = rng.choice(VALID)
    tokens = re.findall(r"[\w.%$]+|\s+|.", text[len(HEAD) :], re.S)
    for _ in range(rng.randint(1, 4)):
        index, second = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        change = rng.randrange(6)
        if change == 0:
            tokens[index] = ""
        elif change == 1:
            tokens[index] += tokens[index]
        elif change == 2:
            tokens[index], tokens[second] = tokens[second], tokens[index]
        elif change == 3:
            tokens[index] = rng.choice(REPLACEMENTS.split(" "))
        elif change == 4:
            tokens[index] = tokens[index][:-1] + chr(rng.randint(1, 255))
        elif rng.random() < 0.3:
            tokens = tokens[: index + 1]
    return (HEAD + "".join(tokens)).encode("utf-8", "surrogateescape")


def compress(data):
    """Return the data as an LZ4 block of literals only."""
    length = len(data)
    length_bytes = b"" if length < 15 else b"\xff" * ((length - 15) // 255) + bytes([(length - 15) % 255])
    return bytes([min(length, 15) << 4]) + length_bytes + data


def container(text, compresses=True):
    """Return a text as nvcc's container: one element for the architecture of its `.target`."""
    code = compress(text) if compresses else text
    size = len(code) if compresses else 0
    # kind (1: PTX), version, header size, payload size, compressed size, ..., architecture, ..., uncompressed size
    element = struct.pack("<HHIQIIIIQQQQ", 1, 0x101, 64, len(code), size, 0, 0, 90, 0, 0, 0, len(text))
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(element) + len(code)) + element + code


def mutate_container(seed):
    """Return a valid container with some bytes changed, or cut off."""
    rng = random.Random(seed)
    data = bytearray(container(rng.choice(VALID).encode(), rng.random() < 0.7))
    for _ in range(rng.randint(1, 6)):
        index = rng.randrange(96) if rng.random() < 0.8 else rng.randrange(len(data))
        data[index] = rng.choice([0, 1, 16, 64, 127, 128, 255, rng.randrange(256)])
    return bytes(data[: rng.randrange(16, len(data))] if rng.random() < 0.2 else data)


def mutant(number):
    """Return a damaged container for every fifth number, else a damaged text."""
    return mutate_container(number) if number % 5 == 4 else mutate_text(number)


def copy_to_end_of_page(data):
    """Copy the data to just before a page without access, so that a read beyond its end faults; return its address."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype, libc.mmap.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long],
    )
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    pages = (len(data) + 4095) // 4096
    start = libc.mmap(None, (pages + 1) * 4096, 3, 0x22, -1, 0)
    libc.mprotect(start + pages * 4096, 4096, 0)
    address = start + pages * 4096 - len(data)
    ctypes.memmove(address, data, len(data))
    return ctypes.c_void_p(address)


def load_and_run(device, data):
    """Load and launch an image; return CUDA's first error, or 0."""
    module = ctypes.c_void_p()
    image = data + b"\0" if data[:4] != b"\x50\xed\x55\xba" else data
    result = device.cuda.cuModuleLoadData(ctypes.byref(module), copy_to_end_of_page(image))
    function = ctypes.c_void_p()
    result = result or device.cuda.cuModuleGetFunction(ctypes.byref(function), module, b"k")
    if result:
        return result
    address = device.allocate(1 << 16)
    arguments = [address] * 48  # more than a kernel is likely to have
    pointers = (ctypes.c_void_p * 48)(*[ctypes.addressof(argument) for argument in arguments])
    result = device.cuda.cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, None, pointers, None)
    device.cuda.cuModuleUnload(module)
    return result


def outcome(device, data):
    """Load and run a text or container in a child process: "ran", "refused", or what killed the child."""
    status = in_child(lambda: REFUSED if load_and_run(device, data) else 0)
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return {0: "ran", REFUSED: "refused"}.get(os.WEXITSTATUS(status), "died")


def main():
    os.environ["VGPU_MAX_INSTRUCTIONS"] = "200000"
    device = Device(build())
    outcomes = [outcome(device, mutant(number)) for number in range(int(sys.argv[1]), int(sys.argv[2]))]
    for number, result in enumerate(outcomes, int(sys.argv[1])):
        if result not in ("ran", "refused"):
            print(f"mutant {number}: {result}")
    print({result: outcomes.count(result) for result in sorted(set(outcomes))})
    return not set(outcomes) <= {"ran", "refused"}


if __name__ == "__main__":
    sys.exit(main())
