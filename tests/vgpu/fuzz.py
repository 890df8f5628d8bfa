"""Differential fuzzing of the virtual GPU: python tests/vgpu/fuzz.py [--programs N] [--seed S] [--only K]

Random programs of PTX on the virtual GPU beside a reference interpreter in Python.  A disagreement is printed with its
seed, and without the lines that it does not need; the exit code is 1 where there was one.  `--oracle ptxas` asks of
random statements which ptxas takes, `--oracle requirements` which PTX version and architecture these need;
`--record FILE` keeps its answers.
`--oracle cuda` compiles functions of CUDA C by nvcc and for the host.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from fuzzing import cuda_oracle, exact_oracle, families, grammar, ptxas_oracle
from fuzzing.programs import draw_program
from virtual_device import Device, build

FUNCTIONS = 50  # of a source of CUDA C
BATCH = 200  # programs of a module
MOST_REFUSED = 1500  # of what is recorded


def by_arithmetic(device, chosen):
    """The number of disagreements."""
    numbers = range(chosen.programs) if chosen.only is None else range(chosen.only, chosen.only + 1)
    found = 0
    for first in range(0, len(numbers), BATCH):
        programs = [draw_program(chosen.seed, number, families.ALL) for number in numbers[first : first + BATCH]]
        for one in exact_oracle.disagreements(device, programs):
            print(exact_oracle.minimize(device, one), flush=True)
            found += 1
        if found >= chosen.most:
            break
    return found


def by_ptxas(device, chosen):
    if not ptxas_oracle.PTXAS:
        sys.exit("ptxas was not found; install the CUDA toolkit, or run the arithmetic oracle")
    choose = random.Random(chosen.seed)
    statements = list(dict.fromkeys(grammar.statement(choose) for _ in range(chosen.programs)))
    answers = ptxas_oracle.answers(device, statements)
    found = [one for one in answers if ptxas_oracle.differs(*one)]
    for statement, taken, _ in found[: chosen.most]:
        print(f"ptxas {'accepts' if taken else 'refuses'}: {statement}")
    if chosen.record:
        accepted = [f"+ {text}\n" for text, taken, _ in answers if taken]
        refused = [f"- {text}\n" for text, taken, _ in answers if taken is False]
        chosen.record.write_text("".join(sorted(accepted + refused[:MOST_REFUSED])))
    return len(found)


def by_requirements(device, chosen):
    """Of random statements that ptxas takes: which versions does it want?  A few for each word of each instruction."""
    if not ptxas_oracle.PTXAS:
        sys.exit("ptxas was not found; install the CUDA toolkit, or run the arithmetic oracle")
    choose = random.Random(chosen.seed)
    statements = list(dict.fromkeys(grammar.statement(choose, strange=0) for _ in range(chosen.programs)))
    taken = [one for one, answer in zip(statements, ptxas_oracle.accepted_by_ptxas(statements), strict=True) if answer]
    told, seen = [], set()
    for statement, needs in zip(taken, ptxas_oracle.requirements(taken), strict=True):
        op, *words = statement.split("%p1 ")[-1].split("%p2 ")[-1].split()[0].rstrip(";").split(".")
        new = {(op, word, needs) for word in ["", *words]} - seen
        if new:
            seen |= new
            told.append((*needs, statement))
    if chosen.record:
        chosen.record.write_text("".join(f"{version} {target} {text}\n" for version, target, text in sorted(told)))
    found = ptxas_oracle.wrong_requirements(device, told)
    for one in found[: chosen.most]:
        print(one)
    return len(found)


def by_host(device, chosen):
    if not cuda_oracle.NVCC:
        sys.exit("nvcc was not found; install the CUDA toolkit, or run the arithmetic oracle")
    found = 0
    for seed in range(chosen.seed, chosen.seed + -(-chosen.programs // FUNCTIONS)):
        with tempfile.TemporaryDirectory() as folder:
            wrong = cuda_oracle.disagreements(device, seed, FUNCTIONS, Path(folder))
        for one in wrong:
            print(one, flush=True)
        found += len(wrong)
        if found >= chosen.most:
            break
    return found


ORACLES = {"arithmetic": by_arithmetic, "ptxas": by_ptxas, "requirements": by_requirements, "cuda": by_host}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--oracle", choices=list(ORACLES), default="arithmetic")
    parser.add_argument("--programs", type=int, default=10000, help="programs, or statements")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="this program alone")
    parser.add_argument("--most", type=int, default=10, help="end after so many disagreements")
    parser.add_argument("--record", type=Path, help="a file for ptxas' answers")
    chosen = parser.parse_args()
    device, began = Device(build()), time.monotonic()
    found = ORACLES[chosen.oracle](device, chosen)
    took = time.monotonic() - began
    print(f"{chosen.oracle}, seed {chosen.seed}: {chosen.programs} programs, {found} disagreements, {took:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
