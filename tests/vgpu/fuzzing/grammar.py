"""A generator of statements after the PTX ISA's grammar, and of near misses: any modifiers, types and operands."""

import random
from dataclasses import dataclass

ROUNDING = "rn rz rm rp"
TYPES = [
    "b8",
    "b16",
    "b32",
    "b64",
    "b128",
    "u8",
    "u16",
    "u32",
    "u64",
    "s8",
    "s16",
    "s32",
    "s64",
    "f16",
    "f16x2",
    "bf16",
    "bf16x2",
    "f32",
    "f64",
    "pred",
    "u16x2",
    "s16x2",
    "f32x2",
    "tf32",
    "e4m3x2",
]
WIDTHS = {
    "pred": 1,
    "f16x2": 32,
    "bf16x2": 32,
    "u16x2": 32,
    "s16x2": 32,
    "f32x2": 64,
    "tf32": 32,
    "e4m3x2": 16,
    **{f"{letter}{bits}": bits for letter in "bus" for bits in (8, 16, 32, 64)},
    "b128": 128,
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
}
COMPARE = "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"
SEMANTICS, SCOPES = "relaxed acquire release acq_rel", "cta cluster gpu sys"
HINTS = "L1::no_allocate L1::evict_last L2::64B L2::256B L2::evict_last L2::evict_normal L2::cache_hint"
SPACES = "global shared shared::cta local param const"
OPERATIONS = "add min max and or xor exch cas inc dec"
VIDEO = "vadd vsub vabsdiff vmin vmax"


@dataclass(frozen=True)
class Spec:
    """An instruction: groups of modifiers in the order of the PTX ISA, the number of types, and the operands.

    Operands: `t` a register of the last type, `T` of the type before it, `w` twice as wide, `u` 32 bits, `p` a
    predicate, `P` one or two, `S` a register and a predicate, `z` a special register, `l` 64 bits, `m` an address,
    `i` a literal, `v` a vector for .v2 or .v4, `V` a vector of parts, `x` a label; `?` marks an optional operand.
    """

    op: str
    groups: tuple[str, ...]
    types: int
    operands: str


def spec(op: str, modifiers: str, types: int, operands: str) -> list[Spec]:
    """Return a Spec for each instruction; modifiers: groups with "|" between them."""
    groups = tuple(group.strip() for group in modifiers.split("|")) if modifiers else ()
    return [Spec(name, groups, types, operands) for name in op.split()]


SPECS = [
    *spec("add sub", f"{ROUNDING} | ftz | sat | cc", 1, "t t t"),
    *spec("addc subc", "cc", 1, "t t t"),
    *spec("mul", f"hi lo wide {ROUNDING} | ftz | sat", 1, "w t t"),
    *spec("mad", f"hi lo wide {ROUNDING} | ftz | sat | cc", 1, "w t t w"),
    *spec("madc", "hi lo | cc", 1, "t t t t"),
    *spec("mul24", "hi lo", 1, "t t t"),
    *spec("mad24", "hi lo | sat", 1, "t t t t"),
    *spec("sad", "", 1, "t t t t"),
    *spec("div", f"approx full {ROUNDING} | ftz", 1, "t t t"),
    *spec("rem and or xor", "", 1, "t t t"),
    *spec("neg abs", "ftz", 1, "t t"),
    *spec("min max", "ftz | NaN | xorsign.abs | relu", 1, "t t t"),
    *spec("fma", f"{ROUNDING} | ftz | sat relu oob", 1, "t t t t"),
    *spec("rcp sqrt rsqrt", f"approx {ROUNDING} | ftz", 1, "t t"),
    *spec("ex2 lg2 sin cos tanh", "approx | ftz", 1, "t t"),
    *spec("copysign", "", 1, "t t t"),
    *spec("testp", "finite infinite number notanumber normal subnormal", 1, "p t"),
    *spec("not cnot brev", "", 1, "t t"),
    *spec("popc clz", "", 1, "u t"),
    *spec("bfind", "shiftamt", 1, "u t"),
    *spec("shl shr", "", 1, "t t u"),
    *spec("bfe", "", 1, "t t u u"),
    *spec("bfi", "", 1, "t t t u u"),
    *spec("szext bmsk", "clamp wrap", 1, "t t u"),
    *spec("fns", "", 1, "t t t t"),
    *spec("dp4a", "", 2, "u u u u"),
    *spec("dp2a", "lo hi", 2, "u u u u"),
    *spec("lop3", "", 1, "t t t t i"),
    *spec("lop3", "and or", 1, "S t t t i p"),
    *spec("min max", "xorsign.abs", 1, "t t t"),
    *spec("mov", "v2 v4", 1, "v v"),
    *spec("mov", "", 1, "t z"),
    *spec("mov", "", 1, "t V"),
    *spec("mov", "", 1, "V t"),
    *spec("shf", "l r | clamp wrap", 1, "t t t u"),
    *spec("prmt", "", 1, "t t t u"),
    *spec("setp", f"{COMPARE} | and or xor | ftz", 1, "P t t p?"),
    *spec("set", f"{COMPARE} | and or xor | ftz", 2, "T t t p?"),
    *spec("selp", "", 1, "t t t p"),
    *spec("slct", "ftz", 2, "T T T t"),
    *spec("mov", "", 1, "t t"),
    *spec("cvt", f"{ROUNDING} rni rzi rmi rpi rna | ftz | sat satfinite | relu", 2, "T t t?"),
    *spec("cvta", "to | global shared local const param", 1, "t t"),
    *spec("isspacep", "global shared local const param shared::cta shared::cluster", 0, "p l"),
    *spec("ld", f"weak volatile relaxed acquire | {SCOPES} | {SPACES} | ca cg cs lu cv nc | v2 v4", 1, "v m"),
    *spec("st", f"weak volatile relaxed release | {SCOPES} | {SPACES} | wb cg cs wt | v2 v4", 1, "m v"),
    *spec("ld", f"relaxed | gpu | {SPACES} | nc | {HINTS} | v2 v4", 1, "v m l?"),
    *spec("st", f"relaxed | gpu | {SPACES} | {HINTS} | v2 v4", 1, "m v l?"),
    *spec("ldu", "global | v2 v4", 1, "v m"),
    *spec("atom", f"{SEMANTICS} | {SCOPES} | {SPACES} | {OPERATIONS} | noftz", 1, "t m t t?"),
    *spec("red", f"relaxed release | {SCOPES} | {SPACES} | {OPERATIONS} | noftz", 1, "m t"),
    *spec("cp", "async | ca cg | shared shared::cta | global | L2::64B L2::128B", 0, "m m i i?"),
    *spec("cp", "async | ca cg | shared | global", 0, "m m i u?"),
    *spec("cp", "async | ca cg | shared | global", 0, "m m i p?"),
    *spec("cp", "async | commit_group wait_group wait_all", 0, "i?"),
    *spec("shfl", "sync | up down bfly idx", 1, "P t u u u?"),
    *spec("vote", "sync | all any uni ballot", 1, "t p u?"),
    *spec("match", "any all | sync", 1, "u t u"),
    *spec("redux", "sync | add min max and or xor", 1, "t t u"),
    *spec("activemask", "", 1, "t"),
    *spec("bar barrier", "cta | sync arrive red | aligned | popc and or", 0, "u u? p?"),
    *spec("bar", "warp.sync", 0, "u"),
    *spec("membar", "cta gl sys", 0, ""),
    *spec("fence", "sc acq_rel acquire release | cta cluster gpu sys", 0, ""),
    *spec("nanosleep", "", 1, "t"),
    *spec("bra", "uni", 0, "x"),
    *spec("ret exit", "uni", 0, ""),
    *spec("trap brkpt", "", 0, ""),
    *spec("prefetch", "global local | L1 L2", 0, "m"),
    *spec("prefetchu", "L1", 0, "m"),
    *spec("discard", "global | L2", 0, "m i"),
    *spec(f"{VIDEO} vset", "lt", 3, "u u u u?"),
    *spec("vmad", "sat | shr7 shr15 | po", 3, "u u u u"),
    *spec(VIDEO, "sat | add min max", 3, "u u u u?"),
    *spec("vshl vshr", "clamp wrap | sat | add min max", 3, "u u u u?"),
    *spec("vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2", "sat | add", 3, "u u u u"),
    *spec("vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4", "sat | add", 3, "u u u u"),
]


def register(rng: random.Random, bits: int) -> str:
    """Return a random register of this width."""
    name, count = {
        1: ("%p", 4),
        8: rng.choice([("%h", 6), ("%b", 4)]),
        16: ("%h", 6),
        32: ("%r", 10),
        64: ("%l", 6),
        128: ("%q", 3),
    }[bits]
    return f"{name}{rng.randrange(count)}"


OTHER_MODIFIERS = ["sat", "ftz", "lo", "hi", "wide", "rn", "rzi", "cc", "v2", "sync", "global", "relu"]
LITERALS = [
    "0",
    "1",
    "2",
    "4",
    "5",
    "8",
    "16",
    "31",
    "32",
    "-1",
    "255",
    "256",
    "65535",
    "-32768",
    "65536",
    "4294967295",
    "0x1F",
    "0f3F800000",
    "0d3FF0000000000000",
    "1.5",
]
# Names in operands: ptxas_oracle declares g, s, c, own, p0, f, the label `out` and the registers around each statement.
ADDRESSES = [
    "[%l0]",
    "[%l1+8]",
    "[%l2+-4]",
    "[%l0+0x10]",
    "[g]",
    "[g+4]",
    "[s]",
    "[s+8]",
    "[c+4]",
    "[own]",
    "[own+4]",
    "[p0]",
    "[%r1]",
    "[%r2+4]",
    "[4096]",
]
ODD_OPERANDS = [
    "%p0",
    "%h0",
    "%r0",
    "%l0",
    "%q0",
    "%b0",
    "%undefined",
    "%tid.x",
    "%tid",
    "%clock64",
    "%laneid",
    "%warpid",
    "WARP_SZ",
    "g",
    "s",
    "own",
    "f",
    "out",
    "_",
    "{%r0,%r1}",
    "[%l0]",
    "-%r1",
    "!%p1",
    "%r1|%p1",
    "{}",
]


SPECIALS = [
    *(
        f"%{name}.{part}"
        for name in ("tid", "ntid", "ctaid", "nctaid", "clusterid", "cluster_nctaid")
        for part in "xyzwrgba"
    ),
    *(
        f"%{name}"
        for name in ("tid", "laneid", "nwarpid", "gridid", "lanemask_lt", "pm0", "pm7", "pm8", "pm3_64", "clock")
    ),
    *(f"%{name}" for name in ("clock64", "clock_hi", "globaltimer", "total_smem_size", "envreg3", "cluster_ctarank")),
    *(f"%{name}" for name in ("current_graph_exec", "is_explicit_cluster", "smid", "cluster_ctaid.w")),
]


def vector(rng: random.Random, modifiers: list[str], bits: int) -> str:
    """Return a random register, or a vector of them if v2 or v4 is a modifier."""
    count = 4 if "v4" in modifiers else 2 if "v2" in modifiers else 1
    if count == 1:
        return register(rng, max(bits, rng.choice([bits, bits, 16, 32, 64])))
    return "{" + ", ".join(register(rng, bits) for _ in range(count)) + "}"


def parts(rng: random.Random, bits: int) -> str:
    """Return a vector of random registers, which together are mostly this wide; some are sinks or literals."""
    part_bits = rng.choice([width for width in (8, 16, 32, 64) if width < bits] or [8])
    count = rng.choice([max(bits // part_bits, 1), max(bits // part_bits, 1), 2, 4])
    names = [register(rng, part_bits if rng.random() < 0.97 else 16) for _ in range(count)]
    if rng.random() < 0.3:
        names[rng.randrange(count)] = rng.choice(["_", "_", "1", "255"])
    return "{" + ", ".join(names) + "}"


def operand(rng: random.Random, kind: str, modifiers: list[str], types: list[str]) -> str:
    """Return an operand that fits most of the time."""
    last_width = WIDTHS[types[-1]] if types else 32
    previous_width = WIDTHS[types[-2]] if len(types) > 1 else last_width
    if kind in "tTwulp":
        width = min(2 * last_width, 64) if "wide" in modifiers and last_width > 1 else last_width
        bits = {"t": last_width, "T": previous_width, "w": width, "u": 32, "l": 64, "p": 1}[kind]
        return register(rng, bits)
    if kind == "P":
        has_two = rng.random() < 0.4
        register_name = register(rng, 1 if not types or "sync" not in modifiers else last_width)
        return f"{register_name}|{register(rng, 1)}" if has_two else register_name
    if kind == "S":
        return f"{rng.choice([register(rng, last_width), '_'])}|{register(rng, 1)}"
    if kind == "z":
        return rng.choice(SPECIALS)
    if kind == "V":
        return parts(rng, last_width)
    if kind == "v":
        return vector(rng, modifiers, last_width)
    return {
        "m": rng.choice(ADDRESSES),
        "i": rng.choice(LITERALS),
        "x": rng.choice(["out", "out", "nowhere"]),
    }[kind]


def statement(rng: random.Random, error_probability: float = 0.15) -> str:
    """Return a statement; `error_probability` is the probability of a wrong modifier, and of a wrong operand."""
    instruction = rng.choice(SPECS)
    modifiers = [rng.choice(group.split()) for group in instruction.groups if rng.random() < 0.45]
    types = [rng.choice(TYPES) for _ in range(instruction.types)]
    operands = [
        operand(rng, kind[0], ".".join(modifiers).split("."), types)
        for kind in instruction.operands.split()
        if len(kind) == 1 or rng.random() < 0.4
    ]
    if rng.random() < error_probability:
        mutate_modifiers(rng, modifiers, types)
    if rng.random() < error_probability:
        mutate_operands(rng, operands)
    elif operands and rng.random() < 0.1:
        operands[rng.randrange(len(operands))] = rng.choice(LITERALS)
    guard = rng.choice(["", "", "", "", "", "", "@%p1 ", "@!%p2 "])
    name = ".".join([instruction.op, *modifiers, *types])
    if rng.random() < 0.03:
        dot = rng.choice([".", ".", ".", ":"])
        name = name.replace(dot, rng.choice([f" {dot}", f" {dot}", f"{dot} "]), rng.randint(1, 2))
    return f"{guard}{name} {', '.join(operands)};"


def mutate_modifiers(rng: random.Random, modifiers: list[str], types: list[str]) -> None:
    """Shuffle the modifiers, repeat or insert one, or remove the last type."""
    change = rng.randrange(4)
    if change == 0 and len(modifiers) > 1:
        rng.shuffle(modifiers)
    elif change == 1 and modifiers:
        modifiers.append(rng.choice(modifiers))
    elif change == 2:
        modifiers.insert(rng.randint(0, len(modifiers)), rng.choice(OTHER_MODIFIERS))
    elif types:
        types.pop()


def mutate_operands(rng: random.Random, operands: list[str]) -> None:
    """Remove, insert or replace an operand."""
    change = rng.randrange(4)
    index = rng.randrange(len(operands)) if operands else 0
    if change == 0 and operands:
        operands.pop(index)
    elif change == 1:
        operands.insert(index, rng.choice(["%r1", "%l1", "%p1", "0"]))
    elif operands:
        operands[index] = rng.choice(ODD_OPERANDS)
