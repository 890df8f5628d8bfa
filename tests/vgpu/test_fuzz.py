"""Random programs of PTX, beside what exact arithmetic makes of them: python tests/vgpu/fuzz.py runs more of them."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fuzzing import cuda_oracle, exact_oracle, families, floats, ptxas_oracle, reals
from fuzzing.programs import draw_program

ANSWERS = Path(ptxas_oracle.__file__).with_name("answers.txt")  # of ptxas 13.0: + it takes, - it refuses
REQUIREMENTS = ANSWERS.with_name("requirements.txt")  # likewise: version, architecture, statement
PROGRAMS = 400  # in CI; before a release 100,000 by the command


def test_random_programs(device):
    found = exact_oracle.disagreements(device, [draw_program(1, number, families.ALL) for number in range(PROGRAMS)])
    assert not found, "\n".join(str(exact_oracle.minimize(device, one)) for one in found)


def flushed_late(form, name):
    """What a result is where subnormals are flushed behind the rounding."""
    format = floats.FORMAT[name]
    plain = next(one for one in floats.arithmetic(name) if one.name == form.name.replace(".ftz", ""))

    def of(*operands):
        made = plain.of(*map(format.flush, operands))
        return format.flush(made) if isinstance(made, int) else made

    return of


def rounded_twice(form, name):
    """What fma gives by way of double precision."""
    format, wide = floats.FORMAT[name], floats.FORMAT["f64"]

    def of(a, b, c):
        total = reals.add(reals.multiply(format.number(a), format.number(b)), format.number(c))
        made = wide.bits(total)
        return format.bits(wide.number(made)) if isinstance(made, int) else format.nan

    return of


@pytest.mark.parametrize(
    ("name", "family", "chosen", "wrong"),
    [
        ("f32", "single precision", re.compile(r"(mul|div|fma)\.r.\.ftz\.f32"), flushed_late),
        ("bf16", "half precision", re.compile(r"fma\.rn\.bf16"), rounded_twice),
    ],
)
def test_operands_come_to_where_rounding_is_hard(device, name, family, chosen, wrong):
    """Faults that show at the least normal number, or where far less than a step decides a tie."""
    forms = [replace(one, of=wrong(one, name)) for one in families.ALL[family] if chosen.search(one.name)]
    programs = [draw_program(3, number, {family: forms}) for number in range(PROGRAMS)]
    assert len(exact_oracle.disagreements(device, programs)) >= 5


def another_bit(of):
    """A reference function whose first result has another lowest bit."""

    def wrong(*values):
        made = of(*values)
        first, *rest = made if isinstance(made, tuple) else (made,)
        return (first ^ 1 if isinstance(first, int) else first, *rest)

    return wrong


@pytest.mark.parametrize("family", families.ALL)
def test_one_wrong_bit_is_found_and_its_line_is_named(device, family):
    wrong = {family: [replace(one, of=another_bit(one.of)) for one in families.ALL[family]]}
    found = exact_oracle.disagreements(device, [draw_program(2, number, wrong) for number in range(20)])
    assert found
    least = exact_oracle.minimize(device, found[0]).program
    assert any(line.form in wrong[family] for line in least.lines)
    assert len(least.lines) <= len(found[0].program.lines)


def test_what_ptxas_refuses_is_refused(device):
    """Random statements, and near misses, with ptxas' answers: both take the same ones, but for two short lists."""
    lines = ANSWERS.read_text().splitlines()
    statements = [line[2:] for line in lines]
    by_virtual_gpu = ptxas_oracle.accepted_by_virtual_gpu(device, statements)
    answers = zip(statements, [line[0] == "+" for line in lines], by_virtual_gpu, strict=True)
    assert [one for one in answers if ptxas_oracle.differs(*one)] == []
    assert sum(by_virtual_gpu) > 500


def test_statements_need_what_ptxas_says(device):
    """The least PTX version and architecture of each instruction, and of each of its words."""
    told = [line.split(" ", 2) for line in REQUIREMENTS.read_text().splitlines()]
    needs = [(int(version), int(target), text) for version, target, text in told]
    assert sum(version > 0 or target > 0 for version, target, _ in needs) > 150
    assert ptxas_oracle.wrong_requirements(device, needs) == []


def test_generic_addresses_that_a_variable_names(device):
    """ld without a space takes shared and local variables by their names, and none of constant memory."""
    head = ".const .align 4 .b32 c = 7;\n"
    body = ".shared .align 4 .b32 s; .local .align 4 .b32 own; st.shared.b32 [s], 5; st.local.b32 [own], 6; "
    operands = np.zeros(1, np.uint32)
    made = device.evaluate(
        f"{body} ld.b32 %d, [s]; ld.b32 %e, [own]; ld.const.b32 %f, [c];", [np.uint32] * 3, operands, head=head
    )
    assert [one.tolist() for one in made] == [[5], [6], [7]]
    for wrong in ("ld.b32 %r1, [c];", "ld.global.b32 %r1, [s];", "ld.shared.b32 %r1, [own];"):
        assert not ptxas_oracle.accepted_by_virtual_gpu(device, [wrong])[0]


@pytest.mark.skipif(not cuda_oracle.NVCC, reason="nvcc was not found")
def test_random_functions_that_nvcc_compiled(device, tmp_path):
    assert cuda_oracle.disagreements(device, 1, 30, tmp_path) == []
