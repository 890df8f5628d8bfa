"""Random kernels that shuffle in incomplete warps, for test_unspecified_values.py.

python tests/vgpu/shuffle_kernels.py COUNT [SEED] > shuffles.ptx writes their PTX.  kernels/shuffles.fatbin is the
machine code of `... 200`, made like that of sass_order_kernels.py.
"""

import random
import sys

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
SETUP = """.reg .pred %p, %q; .reg .b32 %i, %t, %n, %r<4>; .reg .b64 %out, %own, %local, %offset;
.local .align 4 .b8 words[16];
ld.param.u64 %out, [p0]; mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %i, %i, %n, %t;
mul.wide.u32 %own, %i, 4; add.u64 %own, %out, %own;
ld.volatile.global.u32 %r0, [%out+LAST]; cvt.u64.u32 %offset, %r0; mov.u64 %local, words;
add.u64 %local, %local, %offset;
mov.u32 %r0, %t; mad.lo.u32 %r1, %t, 7, 3; xor.b32 %r2, %t, 21; mov.u32 %r3, 1;
"""  # %local: the address of four words, which ptxas keeps in memory because it is loaded
MAX_THREADS = 40
WORDS = 2 * MAX_THREADS + 1  # of the kernel's array: a result of each thread, and a zero
SETUP = SETUP.replace("LAST", str(4 * (WORDS - 1)))


def shuffle(draw, register):
    """Return a random shfl."""
    mode = draw.choice(("down", "up", "bfly", "idx"))
    width = draw.choice((32, 32, 32, 16, 8, 4))
    bounds = (32 - width) << 8 | (0 if mode == "up" else 31)
    distance = register() if draw.random() < 0.1 else str(draw.choice((1, 2, 4, 8, 16, draw.randrange(32))))
    predicate = draw.choice(("", "|%q"))
    return f"shfl.sync.{mode}.b32 {register()}{predicate}, {register()}, {distance}, {bounds}, -1;"


def branch(draw, comparison, register):
    """Return a branch around so much arithmetic that ptxas does not replace it by selections."""
    label = f"around{draw.randrange(10**9)}"
    body = "".join(f"mad.lo.u32 {register}, {register}, {register}, {draw.randrange(99)};" for _ in range(12))
    if draw.random() < 0.5:
        body = body.replace(";", f";{access_local(draw, register)}", 1) + access_local(draw, register)
    return f"{comparison} @%p bra {label}; {body} {label}:"


def access_local(draw, register):
    """Return a load or a store of a word of the thread's own memory, which may be unwritten."""
    place = f"[%local+{4 * draw.randrange(4)}]"
    return draw.choice((f"st.local.u32 {place}, {register};", f"ld.local.u32 {register}, {place};"))


def step(draw):
    """Return a statement that shuffles, computes, selects, or accesses the thread's own memory."""

    def register():
        return f"%r{draw.randrange(4)}"

    def comparison(predicate):
        operand = draw.choice(("%t", "%t", register()))
        return f"setp.{draw.choice(('lt', 'eq', 'ge'))}.u32 {predicate}, {operand}, {draw.randrange(24)};"

    kind = draw.random()
    if kind < 0.1:
        return branch(draw, comparison("%p"), register())
    if kind < 0.2:
        guard = f"{comparison('%p')} @%p " if draw.random() < 0.3 else ""
        return guard + access_local(draw, register())
    if kind < 0.4:
        return shuffle(draw, register)
    if kind < 0.6:
        return (
            f"{draw.choice(('add.u32', 'xor.b32', 'mul.lo.u32', 'min.u32'))} {register()}, {register()}, {register()};"
        )
    if kind < 0.7:
        return f"mad.lo.u32 {register()}, %t, {draw.randrange(1, 9)}, {draw.randrange(9)};"
    if kind < 0.85:
        return f"{comparison('%p')} @%p mov.b32 {register()}, {register()};"
    return f"{comparison('%p')} selp.b32 {register()}, {register()}, {register()}, %p;"


def kernel(seed):
    """Return a kernel's PTX and the number of threads of its block."""
    draw = random.Random(seed)
    steps = "\n".join(step(draw) for _ in range(draw.randint(2, 16)))
    guard = f"setp.lt.u32 %p, %t, {draw.choice((1, 2, 4, 8, 16, 32))}; @%p " if draw.random() < 0.8 else ""
    body = f"{SETUP}mov.pred %q, 0;\n{steps}\n{guard}st.global.u32 [%own], %r{draw.randrange(4)};\nret;"
    return f".visible .entry k{seed}(.param .u64 p0) {{\n{body}\n}}\n", draw.choice(
        (2, 3, 5, 8, 16, 20, 31, MAX_THREADS)
    )


if __name__ == "__main__":
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    sys.stdout.write(HEAD + "".join(kernel(first + k)[0] for k in range(int(sys.argv[1]))))
