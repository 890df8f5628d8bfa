"""Random kernels that shuffle in incomplete warps, for test_unspecified_values.py.

python tests/vgpu/shuffle_kernels.py COUNT [SEED] > shuffles.ptx writes their PTX.  kernels/shuffles.fatbin is the
machine code of `... 200`, made like that of sass_order_kernels.py.
"""

import random
import sys

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
SETUP = """.reg .pred %p, %q; .reg .b32 %i, %t, %n, %r<4>; .reg .b64 %out, %own, %local, %offset, %shared, %neighbor;
.local .align 4 .b8 words[16];
.shared .align 4 .b8 shared_words[256];
ld.param.u64 %out, [p0]; mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %i, %i, %n, %t;
mul.wide.u32 %own, %i, 4; add.u64 %own, %out, %own;
ld.volatile.global.u32 %r0, [%out+LAST]; cvt.u64.u32 %offset, %r0; mov.u64 %local, words;
add.u64 %local, %local, %offset;
mul.wide.u32 %offset, %t, 4; mov.u64 %shared, shared_words; add.u64 %shared, %shared, %offset;
mov.u32 %r0, %t; mad.lo.u32 %r1, %t, 7, 3; xor.b32 %r2, %t, 21; mov.u32 %r3, 1;
"""  # %local: the address of four words, which ptxas keeps in memory because it is loaded
MAX_THREADS = 40
WORDS = 2 * MAX_THREADS + 1  # of the kernel's array: a result of each thread, and a zero
SETUP = SETUP.replace("LAST", str(4 * (WORDS - 1)))


def shuffle(rng, register):
    """Return a random shfl."""
    mode = rng.choice(("down", "up", "bfly", "idx"))
    width = rng.choice((32, 32, 32, 16, 8, 4))
    bounds = (32 - width) << 8 | (0 if mode == "up" else 31)
    distance = register() if rng.random() < 0.1 else str(rng.choice((1, 2, 4, 8, 16, rng.randrange(32))))
    predicate = rng.choice(("", "|%q"))
    return f"shfl.sync.{mode}.b32 {register()}{predicate}, {register()}, {distance}, {bounds}, -1;"


def branch(rng, comparison, register):
    """Return a branch around so much arithmetic that ptxas does not replace it by selections."""
    label = f"around{rng.randrange(10**9)}"
    body = "".join(f"mad.lo.u32 {register}, {register}, {register}, {rng.randrange(99)};" for _ in range(12))
    if rng.random() < 0.5:
        body = body.replace(";", f";{access_local(rng, register)}", 1) + access_local(rng, register)
    return f"{comparison} @%p bra {label}; {body} {label}:"


def access_local(rng, register):
    """Return a load or a store of a word of the thread's own memory, which may be unwritten."""
    place = f"[%local+{4 * rng.randrange(4)}]"
    return rng.choice((f"st.local.u32 {place}, {register};", f"ld.local.u32 {register}, {place};"))


def step(rng):
    """Return a statement that shuffles, computes, selects, or accesses the thread's own memory."""

    def register():
        return f"%r{rng.randrange(4)}"

    def comparison(predicate):
        operand = rng.choice(("%t", "%t", register()))
        return f"setp.{rng.choice(('lt', 'eq', 'ge'))}.u32 {predicate}, {operand}, {rng.randrange(24)};"

    kind = rng.random()
    if kind < 0.1:
        return branch(rng, comparison("%p"), register())
    if kind < 0.2:
        guard = f"{comparison('%p')} @%p " if rng.random() < 0.3 else ""
        return guard + access_local(rng, register())
    if kind < 0.45:
        return shuffle(rng, register)
    if kind < 0.6:
        return (
            f"{rng.choice(('add.u32', 'xor.b32', 'mul.lo.u32', 'min.u32'))} {register()}, {register()}, {register()};"
        )
    if kind < 0.7:
        return f"mad.lo.u32 {register()}, %t, {rng.randrange(1, 9)}, {rng.randrange(9)};"
    if kind < 0.85:
        return f"{comparison('%p')} @%p mov.b32 {register()}, {register()};"
    return f"{comparison('%p')} selp.b32 {register()}, {register()}, {register()}, %p;"


def kernel(seed):
    """Return a kernel's PTX and the number of threads of its block."""
    rng = random.Random(seed)
    steps = "\n".join(step(rng) for _ in range(rng.randint(2, 16)))
    guard = f"setp.lt.u32 %p, %t, {rng.choice((1, 2, 4, 8, 16, 32))}; @%p " if rng.random() < 0.8 else ""
    body = f"{SETUP}mov.pred %q, 0;\n{steps}\n{guard}st.global.u32 [%own], %r{rng.randrange(4)};\nret;"
    return f".visible .entry k{seed}(.param .u64 p0) {{\n{body}\n}}\n", rng.choice(
        (2, 3, 5, 8, 16, 20, 31, MAX_THREADS)
    )


if __name__ == "__main__":
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    sys.stdout.write(HEAD + "".join(kernel(first + k)[0] for k in range(int(sys.argv[1]))))
