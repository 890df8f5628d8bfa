"""Random straight-line programs over registers of all widths, and what each register holds at their end."""

import random
from dataclasses import dataclass, field

import numpy as np
from operands import FORMATS, float_corners, integer_corners

from fuzzing.forms import Form, bits_of, plain_type, register_width, to_signed, wrap

FILES = {1: ("%p", 4), 16: ("%h", 6), 32: ("%r", 10), 64: ("%l", 6)}  # by width: names, and how many there are
REGISTERS = {f"{name}{k}": width for width, (name, count) in FILES.items() for k in range(count)}
FORMATS_OF = {16: ("f16", "bf16"), 32: ("f32",), 64: ("f64",)}
LANES = 32


@dataclass(frozen=True)
class Literal:
    bits: int
    type: str

    def text(self) -> str:
        if self.type in ("f32", "f64"):
            return f"0f{self.bits:08X}" if self.type == "f32" else f"0d{self.bits:016X}"
        return str(to_signed(self.bits, bits_of(self.type)) if self.type[0] == "s" else self.bits)


@dataclass(frozen=True)
class Line:
    form: Form
    outs: tuple[str, ...]
    ins: tuple[str | Literal, ...]
    guard: str = ""  # @%p1 or @!%p1

    def text(self) -> str:
        sources = [one.text() if isinstance(one, Literal) else one for one in self.ins]
        operands = ", ".join(["|".join(self.outs), *sources])
        return f"{self.guard} {self.form.name} {operands};".lstrip()


@dataclass
class Program:
    number: str  # which one it is: seed and number
    lines: list[Line]
    inputs: dict[str, list[int]] = field(repr=False)
    lanes: int = LANES


def interesting(width: int) -> np.ndarray:
    """Bits worth trying in a register of this width."""
    if width == 1:
        return np.array([0, 1], np.uint64)
    found = integer_corners(width)
    for name in FORMATS_OF[width]:
        found += float_corners(name)
    if width == 32:
        small = float_corners("f16") + float_corners("bf16")
        found += [low | small[-k] << 16 for k, low in enumerate(small)]
    return np.array(found, np.uint64)


POOLS = {width: interesting(width) for width in FILES}


def draw_bits(draw: np.random.Generator, width: int, count: int) -> np.ndarray:
    """Corners, their neighbors, floats of like magnitude, halves between two roundings, and any bits of any length."""
    pool = POOLS[width]
    made = pool[draw.integers(0, len(pool), count)]
    if width == 1:
        return made
    how = draw.random(count)
    any_bits = draw.integers(0, 1 << 64, count, np.uint64) >> np.uint64(64 - width)
    shorter = any_bits >> draw.integers(0, width, count).astype(np.uint64)
    exponent, fraction = FORMATS[FORMATS_OF[width][0]]
    mean = (1 << exponent - 1) - 1
    near = any_bits & np.uint64((1 << fraction) - 1 | 1 << width - 1)
    near |= draw.integers(mean - 4, mean + 4, count).astype(np.uint64) << np.uint64(fraction)
    by = draw.integers(-2, 3, count).astype(np.uint64)
    kept = draw.integers(1, width, count).astype(np.uint64)  # of the low bits: they become half a unit, or nearly
    tie = (shorter >> kept << kept | np.uint64(1) << kept - np.uint64(1)) + by
    choices = [(0.35, made), (0.45, made + by), (0.6, near), (0.75, shorter), (0.85, tie)]
    made = np.select([how < limit for limit, _ in choices], [one for _, one in choices], any_bits)
    return made & np.uint64((1 << width) - 1)


RELATED = 0.5  # of the lanes
OF_WIDTH = {16: [("f16", 1), ("bf16", 1)], 32: [("f32", 1), ("f32", 1), ("f16", 2), ("bf16", 2)], 64: [("f64", 1)]}


def related_floats(draw: np.random.Generator, name: str, count: int) -> np.ndarray:
    """The registers of a lane, such that an operation on two or three of them comes to where rounding is hard.

    Either products and quotients lie about the least normal number, or products are ties between two numbers, and some
    registers hold far less than a step, which decides.
    """
    exponent, fraction = FORMATS[name]
    mean, ones = (1 << exponent - 1) - 1, (1 << fraction) - 1
    if draw.random() < 0.5:
        one = 1 - mean if draw.random() < 0.2 else draw.integers(2 - mean, mean)
        at = np.where(draw.random(count) < 0.5, one, 1 - mean - one + draw.choice([-1, -1, 0, 1], count))
        fractions = draw.choice([0, 0, ones, ones, ones - 1, 1], count)
    else:
        at = np.where(draw.random(count) < 0.6, draw.integers(-2, 3, count), draw.integers(-mean, -mean // 4, count))
        # The lowest bits of two have a product of half a step; there may be more bits above them.
        place = draw.integers(1, fraction + 1)
        lowest = 1 << np.where(draw.random(count) < 0.5, fraction - place, place - 1)
        above = draw.integers(0, 1 << fraction, count) & -lowest & ones
        fractions = lowest | np.where(draw.random(count) < 0.5, above, 0)
    fields = np.clip(at + mean, 0, 2 * mean).astype(np.uint64) << np.uint64(fraction)
    signs = draw.integers(0, 2, count).astype(np.uint64) << np.uint64(exponent + fraction)
    return signs | fields | fractions.astype(np.uint64)


def draw_registers(draw: np.random.Generator, width: int, count: int) -> np.ndarray:
    """[register, lane]: each by itself, but that in some lanes all are related."""
    rows = draw_bits(draw, width, count * LANES).reshape(count, LANES)
    for lane in np.nonzero(draw.random(LANES) < RELATED)[0] if width > 1 else []:
        name, parts = OF_WIDTH[width][draw.integers(len(OF_WIDTH[width]))]
        rows[:, lane] = 0
        for part in range(parts):
            rows[:, lane] |= related_floats(draw, name, count) << np.uint64(16 * part)
    return rows


def draw_literal(choose: random.Random, written: str) -> Literal:
    type = plain_type(written)
    if ":" in written:
        low, high = written.split(":")[1].split("-")
        return Literal(choose.randint(int(low), int(high)), type)
    width = bits_of(type)
    pool = POOLS[width]
    value = int(pool[choose.randrange(len(pool))]) if choose.random() < 0.5 else choose.getrandbits(width)
    return Literal(value >> choose.choice([0, 0, width // 2, width - 3]), type)


def may_be_literal(written: str) -> bool:
    """f16 and its like have no literals, nor have predicates; registers that are wider say so."""
    return "@" not in written and written[0] != "p" and not written.endswith("x2") and not written.endswith("f16")


def draw_line(choose: random.Random, form: Form) -> Line:
    names = {width: [f"{name}{k}" for k in range(count)] for width, (name, count) in FILES.items()}
    outs: list[str] = []
    for one in form.outs:
        outs.append(choose.choice([name for name in names[register_width(one)] if name not in outs]))
    ins: list[str | Literal] = []
    for one in form.ins:
        literal = one[0] == "=" or (may_be_literal(one) and choose.random() < 0.12)
        ins.append(draw_literal(choose, one) if literal else choose.choice(names[register_width(one)]))
    guard = choose.choice(["@", "@!"]) + choose.choice(names[1]) if choose.random() < 0.15 else ""
    return Line(form, tuple(outs), tuple(ins), guard)


def draw_program(seed: int, number: int, families: dict[str, list[Form]], length: int = 16) -> Program:
    choose = random.Random(seed << 32 | number)
    by_family = list(families.values())
    chains = [form for form in families.get("chains", []) if form.reads_carry]
    lines: list[Line] = []
    carries = False  # is CC.CF defined?
    for _ in range(choose.randint(1, length)):
        goes_on = carries and chains and lines[-1].form.writes_carry and choose.random() < 0.6
        form = choose.choice(chains if goes_on else choose.choice(by_family))
        if form.reads_carry and not carries:
            continue
        line = draw_line(choose, form)
        carries |= form.writes_carry and not line.guard
        lines.append(line)
    draw = np.random.default_rng([seed, number])
    inputs = {}
    for width, (name, count) in FILES.items():
        rows = draw_registers(draw, width, count).tolist()
        inputs.update({f"{name}{k}": row for k, row in enumerate(rows)})
    lanes = LANES if choose.random() < 0.7 else choose.randint(1, LANES)
    return Program(f"--seed {seed} --only {number}", lines, inputs, lanes)


def evaluate(program: Program) -> dict[str, list[object]]:
    """Each register's value in each lane; None where PTX leaves it open."""
    state: dict[str, list[object]] = {name: list(row[: program.lanes]) for name, row in program.inputs.items()}
    carry: list[object] = [None] * program.lanes
    for line in program.lines:
        step(line, state, carry, program.lanes)
    return state


def step(line: Line, state: dict[str, list[object]], carry: list[object], lanes: int) -> None:
    form = line.form
    sources = [[one.bits] * lanes if isinstance(one, Literal) else state[one] for one in line.ins]
    if form.reads_carry:
        sources.append(list(carry))
    results = [form.apply(list(values)) for values in zip(*sources, strict=True)]
    targets = [
        (state[name], register_width(one), plain_type(one)) for name, one in zip(line.outs, form.outs, strict=True)
    ]
    if form.writes_carry:
        targets.append((carry, 1, "pred"))
    guard = list(state[line.guard.lstrip("@!")]) if line.guard else [1] * lanes
    runs = 0 if line.guard.startswith("@!") else 1
    for k, (target, width, type) in enumerate(targets):
        for lane in range(lanes):
            if guard[lane] is None:
                target[lane] = None
            elif guard[lane] == runs:
                target[lane] = extended(results[lane][k], type, width)


def extended(value: object, type: str, width: int) -> object:
    """As it lies in a register: a type that is narrower is extended by its own sign."""
    if not isinstance(value, int):
        return value
    bits = bits_of(type)
    value = wrap(value, bits)
    return wrap(to_signed(value, bits), width) if type[0] == "s" and width > bits else value
