"""Damaged texts and containers, and what becomes of them: python tests/vgpu/mutants.py FIRST LAST

Prints how each ended.  A child process takes each one, and may die of it.
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
NASTY = (
    "; { } [ ] ( ) , | ! - @ : [[ {} %r1 %p1 %l0 _ 0 -1 0x 0f3F 7.5 4294967296 99999999999999999999 .align .shared "
    '.b128 .pred [1073741824] <1073741824> \0 \x80 " /* // s a p0 total {%r1} %tid.x WARP_SZ .v4 .f16x2 exit call '
    "<4000000000> .local .weak twice .callprototype ret"
)


def mutated(seed):
    """A valid text with one to four of its words left out, doubled, exchanged or replaced, or with an end too soon."""
    draw = random.Random(seed)
    text = draw.choice(VALID)
    words = re.findall(r"[\w.%$]+|\s+|.", text[len(HEAD) :], re.S)
    for _ in range(draw.randint(1, 4)):
        at, other = draw.randrange(len(words)), draw.randrange(len(words))
        way = draw.randrange(6)
        if way == 0:
            words[at] = ""
        elif way == 1:
            words[at] += words[at]
        elif way == 2:
            words[at], words[other] = words[other], words[at]
        elif way == 3:
            words[at] = draw.choice(NASTY.split(" "))
        elif way == 4:
            words[at] = words[at][:-1] + chr(draw.randint(1, 255))
        elif draw.random() < 0.3:
            words = words[: at + 1]
    return (HEAD + "".join(words)).encode("utf-8", "surrogateescape")


def packed(data):
    """As an LZ4 block of literals alone."""
    length = len(data)
    more = b"" if length < 15 else b"\xff" * ((length - 15) // 255) + bytes([(length - 15) % 255])
    return bytes([min(length, 15) << 4]) + more + data


def container(text, compresses=True):
    """What nvcc would make of a text: one element for the architecture of its `.target`."""
    code = packed(text) if compresses else text
    size = len(code) if compresses else 0
    element = struct.pack("<HHIQIIIIQQQQ", 1, 0x101, 64, len(code), size, 0, 0, 90, 0, 0, 0, len(text))
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(element) + len(code)) + element + code


def mutated_container(seed):
    """A valid container with some of its bytes changed or its end cut off."""
    draw = random.Random(seed)
    data = bytearray(container(draw.choice(VALID).encode(), draw.random() < 0.7))
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(96) if draw.random() < 0.8 else draw.randrange(len(data))
        data[at] = draw.choice([0, 1, 16, 64, 127, 128, 255, draw.randrange(256)])
    return bytes(data[: draw.randrange(16, len(data))] if draw.random() < 0.2 else data)


def mutant(number):
    return mutated_container(number) if number % 5 == 4 else mutated(number)


def at_the_end_of_memory(data):
    """Its address, where the page behind it may not be touched: a read beyond would be seen."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype, libc.mmap.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long],
    )
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    pages = (len(data) + 4095) // 4096
    start = libc.mmap(None, (pages + 1) * 4096, 3, 0x22, -1, 0)
    libc.mprotect(start + pages * 4096, 4096, 0)
    at = start + pages * 4096 - len(data)
    ctypes.memmove(at, data, len(data))
    return ctypes.c_void_p(at)


def loaded_and_run(device, data):
    """CUDA's first result that is an error."""
    module = ctypes.c_void_p()
    image = data + b"\0" if data[:4] != b"\x50\xed\x55\xba" else data
    result = device.cuda.cuModuleLoadData(ctypes.byref(module), at_the_end_of_memory(image))
    function = ctypes.c_void_p()
    result = result or device.cuda.cuModuleGetFunction(ctypes.byref(function), module, b"k")
    if result:
        return result
    at = device.allocate(1 << 16)
    given = [at] * 48
    pointers = (ctypes.c_void_p * 48)(*[ctypes.addressof(one) for one in given])
    result = device.cuda.cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, None, pointers, None)
    device.cuda.cuModuleUnload(module)
    return result


def outcome(device, data):
    """Load and run a text or container in a child process: "ran", "refused", or what killed the child."""
    status = in_child(lambda: REFUSED if loaded_and_run(device, data) else 0)
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return {0: "ran", REFUSED: "refused"}.get(os.WEXITSTATUS(status), "died")


def main():
    os.environ["VGPU_MAX_INSTRUCTIONS"] = "200000"
    device = Device(build())
    ends_of = [outcome(device, mutant(number)) for number in range(int(sys.argv[1]), int(sys.argv[2]))]
    for number, end in enumerate(ends_of, int(sys.argv[1])):
        if end not in ("ran", "refused"):
            print(f"mutant {number}: {end}")
    print({end: ends_of.count(end) for end in sorted(set(ends_of))})
    return not set(ends_of) <= {"ran", "refused"}


if __name__ == "__main__":
    sys.exit(main())
