"""Random kernels that shuffle in incomplete warps and read unwritten memory, for test_unspecified_values.py.

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


WIDE_SETUP = """.reg .b64 %w<3>, %wide; .reg .b16 %h<2>; .reg .b32 %all;
.shared .align 8 .b8 wide_words[512]; cvt.u64.u32 %wide, %t; shl.b64 %wide, %wide, 3; mov.u64 %w0, wide_words;
add.u64 %wide, %wide, %w0; mov.u64 %w0, 5; cvt.u64.u32 %w1, %t; mov.u64 %w2, 0; mov.u16 %h0, 3; cvt.u16.u32 %h1, %t;
mov.b32 %all, -1;
"""
# Statements in which an operand is not one register of 4 bytes; R, W and H stand for random registers.
WIDE_STEPS = (
    "mov.b64 W, {R, R};",
    "mov.b64 {R, R}, W;",
    "add.u64 W, W, W;",
    "shl.b64 W, W, 32;",
    "cvt.u32.u64 R, W;",
    "cvt.u64.u32 W, R;",
    "mul.wide.u32 W, R, R;",
    "add.cc.u32 R, R, R; addc.u32 R, R, R;",
    "sub.cc.u32 R, R, R; subc.u32 R, R, R;",
    "cvt.u16.u32 H, R;",
    "add.u16 H, H, H;",
    "cvt.u32.u16 R, H;",
    "mov.b32 R, {H, H};",
    "mov.b32 {H, H}, R;",
    "setp.lt.and.u32 %p|%q, R, R, !%q; @!%p mov.u32 R, R;",
    "setp.eq.u32 %q, R, R; selp.b64 W, W, W, %q;",
    "shf.l.wrap.b32 R, R, R, R;",
    "lop3.b32 R, R, R, R, 0x96;",
    "bfi.b32 R, R, R, 4, 8;",
    "shfl.sync.down.b32 R|%p, R, R, 31, %all;",
    "st.shared.u64 [%wide], W;",
    "ld.shared.u64 W, [%wide];",
    "st.shared.v2.u32 [%wide], {R, R};",
    "ld.shared.v2.u32 {R0, R1}, [%wide];",
    "st.shared.u32 [%wide+4], R;",
    "ld.shared.u32 R, [%wide+4];",
    "st.shared.u8 [%wide+2], R;",
    "ld.shared.v4.u8 {%h0, %h1, _, _}, [%wide];",
    "ld.shared.u16 H, [%wide+2];",
    "ld.local.v2.u32 {%r0, %r2}, [words];",
    "st.local.u64 [words+8], W;",
    "ld.local.u64 W, [words+8];",
)


def wide_step(rng):
    """Return one of WIDE_STEPS with random registers."""
    text = rng.choice(WIDE_STEPS).replace("R0", "%r0").replace("R1", "%r1")
    for letter, count in (("R", 4), ("W", 3), ("H", 2)):
        while letter in text:
            text = text.replace(letter, f"%{letter.lower()}{rng.randrange(count)}", 1)
    return text


def kernel(seed, is_wide=False):
    """Return a kernel's PTX and the number of threads of its block.  is_wide: with WIDE_STEPS, too."""
    rng = random.Random(seed)
    setup = SETUP.replace(".local .align 4", ".local .align 8") + WIDE_SETUP if is_wide else SETUP
    choose = (lambda: rng.choice((step, wide_step))(rng)) if is_wide else lambda: step(rng)
    steps = "\n".join(choose() for _ in range(rng.randint(2, 16)))
    guard = f"setp.lt.u32 %p, %t, {rng.choice((1, 2, 4, 8, 16, 32))}; @%p " if rng.random() < 0.8 else ""
    body = f"{setup}mov.pred %q, 0;\n{steps}\n{guard}st.global.u32 [%own], %r{rng.randrange(4)};\nret;"
    return f".visible .entry k{seed}(.param .u64 p0) {{\n{body}\n}}\n", rng.choice(
        (2, 3, 5, 8, 16, 20, 31, MAX_THREADS)
    )


if __name__ == "__main__":
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    sys.stdout.write(HEAD + "".join(kernel(first + k)[0] for k in range(int(sys.argv[1]))))
