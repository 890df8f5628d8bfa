"""Differential fuzzing of the virtual GPU: python tests/vgpu/fuzz.py [--programs N] [--seed S] [--only K]

The command compares random PTX programs on the virtual GPU with a reference interpreter in Python.  It prints each
disagreement with its seed, reduced to the lines that it needs; the exit code is 1 if there is one.

--oracle ptxas: compare which random statements ptxas and the virtual GPU accept.
--oracle requirements: compare which PTX version and architecture random statements need.
--oracle cuda: compare functions of CUDA C, compiled by nvcc, with the same functions compiled for the host.
--record FILE: keep the answers of ptxas.
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

FUNCTIONS_PER_SOURCE = 50
BATCH_SIZE = 200
MAX_RECORDED_REFUSALS = 1500


def by_arithmetic(device, chosen):
    """Compare programs with exact arithmetic; return the number of disagreements."""
    numbers = range(chosen.programs) if chosen.only is None else range(chosen.only, chosen.only + 1)
    count = 0
    for first in range(0, len(numbers), BATCH_SIZE):
        programs = [draw_program(chosen.seed, number, families.ALL) for number in numbers[first : first + BATCH_SIZE]]
        for program in exact_oracle.disagreements(device, programs):
            print(exact_oracle.minimize(device, program), flush=True)
            count += 1
        if count >= chosen.most:
            break
    return count


def by_ptxas(device, chosen):
    """Compare which statements ptxas and the device accept; return the number of differences."""
    if not ptxas_oracle.PTXAS:
        sys.exit("ptxas was not found; install the CUDA toolkit, or run the arithmetic oracle")
    rng = random.Random(chosen.seed)
    statements = list(dict.fromkeys(grammar.statement(rng) for _ in range(chosen.programs)))
    answers = ptxas_oracle.answers(device, statements)
    differences = [answer for answer in answers if ptxas_oracle.differs(*answer)]
    for statement, is_accepted, _ in differences[: chosen.most]:
        print(f"ptxas {'accepts' if is_accepted else 'refuses'}: {statement}")
    if chosen.record:
        accepted = [f"+ {text}\n" for text, is_accepted, _ in answers if is_accepted]
        refused = [f"- {text}\n" for text, is_accepted, _ in answers if is_accepted is False]
        chosen.record.write_text("".join(sorted(accepted + refused[:MAX_RECORDED_REFUSALS])))
    return len(differences)


def by_requirements(device, chosen):
    """Compare the versions that ptxas and the device want; return the number of differences.

    Of the statements that ptxas accepts, a few remain for each modifier of each instruction.
    """
    if not ptxas_oracle.PTXAS:
        sys.exit("ptxas was not found; install the CUDA toolkit, or run the arithmetic oracle")
    rng = random.Random(chosen.seed)
    statements = list(dict.fromkeys(grammar.statement(rng, error_probability=0) for _ in range(chosen.programs)))
    accepted = [
        text for text, answer in zip(statements, ptxas_oracle.accepted_by_ptxas(statements), strict=True) if answer
    ]
    needed, known = [], set()
    for statement, needs in zip(accepted, ptxas_oracle.requirements(accepted), strict=True):
        op, *modifiers = statement.split("%p1 ")[-1].split("%p2 ")[-1].split()[0].rstrip(";").split(".")
        new = {(op, modifier, needs) for modifier in ["", *modifiers]} - known
        if new:
            known |= new
            needed.append((*needs, statement))
    if chosen.record:
        chosen.record.write_text("".join(f"{version} {target} {text}\n" for version, target, text in sorted(needed)))
    wrong = ptxas_oracle.wrong_requirements(device, needed)
    for message in wrong[: chosen.most]:
        print(message)
    return len(wrong)


def by_host(device, chosen):
    """Compare CUDA functions on the device with the same functions on the host; return the number of disagreements."""
    if not cuda_oracle.NVCC:
        sys.exit("nvcc was not found; install the CUDA toolkit, or run the arithmetic oracle")
    count = 0
    for seed in range(chosen.seed, chosen.seed + -(-chosen.programs // FUNCTIONS_PER_SOURCE)):
        with tempfile.TemporaryDirectory() as folder:
            wrong = cuda_oracle.disagreements(device, seed, FUNCTIONS_PER_SOURCE, Path(folder))
        for function in wrong:
            print(function, flush=True)
        count += len(wrong)
        if count >= chosen.most:
            break
    return count


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
    device, start = Device(build()), time.monotonic()
    count = ORACLES[chosen.oracle](device, chosen)
    seconds = time.monotonic() - start
    print(f"{chosen.oracle}, seed {chosen.seed}: {chosen.programs} programs, {count} disagreements, {seconds:.0f} s")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
