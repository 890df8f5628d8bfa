"""Random straight-line programs over registers of all widths, and a reference interpreter for them."""

import random
from dataclasses import dataclass, field

import numpy as np
from operands import FORMATS, float_corners, integer_corners

from fuzzing.forms import Form, bits_of, plain_type, register_width, to_signed, wrap

REGISTER_FILES = {1: ("%p", 4), 16: ("%h", 6), 32: ("%r", 10), 64: ("%l", 6)}  # by width: (prefix, number) of the names
REGISTERS = {f"{name}{k}": width for width, (name, count) in REGISTER_FILES.items() for k in range(count)}
FORMATS_OF = {16: ("f16", "bf16"), 32: ("f32",), 64: ("f64",)}
LANES = 32


@dataclass(frozen=True)
class Literal:
    """A number that stands as an operand in the text."""

    bits: int
    type: str

    def text(self) -> str:
        if self.type in ("f32", "f64"):
            return f"0f{self.bits:08X}" if self.type == "f32" else f"0d{self.bits:016X}"
        return str(to_signed(self.bits, bits_of(self.type)) if self.type[0] == "s" else self.bits)


@dataclass(frozen=True)
class Line:
    """An instruction with its operands, and a guard ("" or "@%p1")."""

    form: Form
    outs: tuple[str, ...]
    ins: tuple[str | Literal, ...]
    guard: str = ""  # @%p1 or @!%p1

    def text(self) -> str:
        sources = [source.text() if isinstance(source, Literal) else source for source in self.ins]
        operands = ", ".join(["|".join(self.outs), *sources])
        return f"{self.guard} {self.form.name} {operands};".lstrip()


@dataclass
class Program:
    """Lines, and the registers' initial values in each lane."""

    options: str  # of the fuzzer, which generate it again
    lines: list[Line]
    inputs: dict[str, list[int]] = field(repr=False)
    lanes: int = LANES


def list_corners(width: int) -> np.ndarray:
    """Return corner cases for a register of this width."""
    if width == 1:
        return np.array([0, 1], np.uint64)
    values = integer_corners(width)
    for name in FORMATS_OF[width]:
        values += float_corners(name)
    if width == 32:
        small = float_corners("f16") + float_corners("bf16")
        values += [low | small[-k] << 16 for k, low in enumerate(small)]
    return np.array(values, np.uint64)


# {width of a register: its corner cases}
POOLS = {width: list_corners(width) for width in REGISTER_FILES}


def draw_bits(rng: np.random.Generator, width: int, count: int) -> np.ndarray:
    """Draw corners, their neighbors, floats of like magnitude, ties between two roundings, and random bits."""
    pool = POOLS[width]
    bits = pool[rng.integers(0, len(pool), count)]
    if width == 1:
        return bits
    choice = rng.random(count)
    any_bits = rng.integers(0, 1 << 64, count, np.uint64) >> np.uint64(64 - width)
    shorter = any_bits >> rng.integers(0, width, count).astype(np.uint64)
    exponent, fraction = FORMATS[FORMATS_OF[width][0]]
    bias = (1 << exponent - 1) - 1
    near = any_bits & np.uint64((1 << fraction) - 1 | 1 << width - 1)
    near |= rng.integers(bias - 4, bias + 4, count).astype(np.uint64) << np.uint64(fraction)
    offset = rng.integers(-2, 3, count).astype(np.uint64)
    low_bits = rng.integers(1, width, count).astype(
        np.uint64
    )  # bits below the unit: they become half a unit, or nearly
    tie = (shorter >> low_bits << low_bits | np.uint64(1) << low_bits - np.uint64(1)) + offset
    choices = [(0.35, bits), (0.45, bits + offset), (0.6, near), (0.75, shorter), (0.85, tie)]
    bits = np.select([choice < limit for limit, _ in choices], [candidate for _, candidate in choices], any_bits)
    return bits & np.uint64((1 << width) - 1)


RELATED_SHARE = 0.5
FLOATS_OF_WIDTH = {
    16: [("f16", 1), ("bf16", 1)],
    32: [("f32", 1), ("f32", 1), ("f16", 2), ("bf16", 2)],
    64: [("f64", 1)],
}


def related_floats(rng: np.random.Generator, name: str, count: int) -> np.ndarray:
    """Draw a lane's registers so that operations on two or three of them hit hard cases of rounding.

    Either products and quotients lie near the least normal number, or products are ties between two numbers, and some
    registers are far smaller than a unit in the last place, but decide the tie.
    """
    exponent, fraction = FORMATS[name]
    bias, ones = (1 << exponent - 1) - 1, (1 << fraction) - 1
    if rng.random() < 0.5:
        center = 1 - bias if rng.random() < 0.2 else rng.integers(2 - bias, bias)
        exponents = np.where(rng.random(count) < 0.5, center, 1 - bias - center + rng.choice([-1, -1, 0, 1], count))
        fractions = rng.choice([0, 0, ones, ones, ones - 1, 1], count)
    else:
        exponents = np.where(
            rng.random(count) < 0.6, rng.integers(-2, 3, count), rng.integers(-bias, -bias // 4, count)
        )
        # The lowest bits of two have a product of half a unit in the last place; there may be more bits above them.
        place = rng.integers(1, fraction + 1)
        lowest = 1 << np.where(rng.random(count) < 0.5, fraction - place, place - 1)
        above = rng.integers(0, 1 << fraction, count) & -lowest & ones
        fractions = lowest | np.where(rng.random(count) < 0.5, above, 0)
    fields = np.clip(exponents + bias, 0, 2 * bias).astype(np.uint64) << np.uint64(fraction)
    signs = rng.integers(0, 2, count).astype(np.uint64) << np.uint64(exponent + fraction)
    return signs | fields | fractions.astype(np.uint64)


def draw_registers(rng: np.random.Generator, width: int, count: int) -> np.ndarray:
    """Draw [register, lane]: independent values, but related ones in RELATED_SHARE of the lanes."""
    rows = draw_bits(rng, width, count * LANES).reshape(count, LANES)
    for lane in np.nonzero(rng.random(LANES) < RELATED_SHARE)[0] if width > 1 else []:
        name, parts = FLOATS_OF_WIDTH[width][rng.integers(len(FLOATS_OF_WIDTH[width]))]
        rows[:, lane] = 0
        for part in range(parts):
            rows[:, lane] |= related_floats(rng, name, count) << np.uint64(16 * part)
    return rows


def draw_literal(rng: random.Random, operand_type: str) -> Literal:
    """Draw a literal of a type such as u32 or "=u32:0-255" (see Form): in its range, a corner case or random bits."""
    type = plain_type(operand_type)
    if ":" in operand_type:
        low, high = operand_type.split(":")[1].split("-")
        return Literal(rng.randint(int(low), int(high)), type)
    width = bits_of(type)
    pool = POOLS[width]
    value = int(pool[rng.randrange(len(pool))]) if rng.random() < 0.5 else rng.getrandbits(width)
    return Literal(value >> rng.choice([0, 0, width // 2, width - 3]), type)


def may_be_literal(operand_type: str) -> bool:
    """Return whether PTX has literals of the type: not for halves, pairs, predicates and wider registers ("u8@32")."""
    return (
        "@" not in operand_type
        and operand_type[0] != "p"
        and not operand_type.endswith("x2")
        and not operand_type.endswith("f16")
    )


def draw_line(rng: random.Random, form: Form) -> Line:
    """Draw registers and literals for a form."""
    names = {width: [f"{name}{k}" for k in range(count)] for width, (name, count) in REGISTER_FILES.items()}
    outs: list[str] = []
    for operand_type in form.outs:
        outs.append(rng.choice([name for name in names[register_width(operand_type)] if name not in outs]))
    ins: list[str | Literal] = []
    for operand_type in form.ins:
        # "=": it has to be a literal.
        literal = operand_type[0] == "=" or (may_be_literal(operand_type) and rng.random() < 0.12)
        ins.append(draw_literal(rng, operand_type) if literal else rng.choice(names[register_width(operand_type)]))
    guard = rng.choice(["@", "@!"]) + rng.choice(names[1]) if rng.random() < 0.15 else ""
    return Line(form, tuple(outs), tuple(ins), guard)


def draw_program(seed: int, number: int, families: dict[str, list[Form]], length: int = 16) -> Program:
    """Draw a program of `length` lines."""
    rng = random.Random(seed << 32 | number)
    by_family = list(families.values())
    chains = [form for form in families.get("chains", []) if form.reads_carry]
    lines: list[Line] = []
    has_carry = False  # is CC.CF defined?
    for _ in range(rng.randint(1, length)):
        continues_chain = has_carry and chains and lines[-1].form.writes_carry and rng.random() < 0.6
        form = rng.choice(chains if continues_chain else rng.choice(by_family))
        if form.reads_carry and not has_carry:
            continue
        line = draw_line(rng, form)
        has_carry |= form.writes_carry and not line.guard
        lines.append(line)
    numpy_rng = np.random.default_rng([seed, number])
    inputs = {}
    for width, (name, count) in REGISTER_FILES.items():
        rows = draw_registers(numpy_rng, width, count).tolist()
        inputs.update({f"{name}{k}": row for k, row in enumerate(rows)})
    lanes = LANES if rng.random() < 0.7 else rng.randint(1, LANES)
    return Program(f"--seed {seed} --only {number}", lines, inputs, lanes)


def evaluate(program: Program) -> dict[str, list[object]]:
    """Return each register's value in each lane; None if PTX leaves it undefined."""
    state: dict[str, list[object]] = {name: list(row[: program.lanes]) for name, row in program.inputs.items()}
    carry: list[object] = [None] * program.lanes
    for line in program.lines:
        step(line, state, carry, program.lanes)
    return state


def step(line: Line, state: dict[str, list[object]], carry: list[object], lanes: int) -> None:
    """Execute one line in all lanes."""
    form = line.form
    sources = [[source.bits] * lanes if isinstance(source, Literal) else state[source] for source in line.ins]
    if form.reads_carry:
        sources.append(list(carry))
    results = [form.apply(list(values)) for values in zip(*sources, strict=True)]
    targets = [
        (state[name], register_width(type), plain_type(type)) for name, type in zip(line.outs, form.outs, strict=True)
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
                target[lane] = extend_to_register(results[lane][k], type, width)


def extend_to_register(value: object, type: str, width: int) -> object:
    """Return a value as a register holds it: a narrow signed value is sign-extended."""
    if not isinstance(value, int):
        return value
    bits = bits_of(type)
    value = wrap(value, bits)
    return wrap(to_signed(value, bits), width) if type[0] == "s" and width > bits else value
