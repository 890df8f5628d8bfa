"""Random PTX programs on the virtual GPU against exact arithmetic; tests/vgpu/fuzz.py runs more of them.

A form is an instruction with its modifiers and types, and its reference function; forms come in families.
"""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fuzzing import cuda_oracle, exact_oracle, families, floats, ptxas_oracle, reals
from fuzzing.programs import draw_program

ANSWERS = Path(ptxas_oracle.__file__).with_name("answers.txt")  # of ptxas 13.0: + accepted, - refused
REQUIREMENTS = ANSWERS.with_name("requirements.txt")  # likewise: version, architecture, statement
PROGRAMS = 400  # in a test, drawn by draw_program(seed, number, families); before a release, fuzz.py runs 100,000


def test_random_programs_agree_with_exact_arithmetic(device):
    disagreements = exact_oracle.disagreements(
        device, [draw_program(1, number, families.ALL) for number in range(PROGRAMS)]
    )
    assert not disagreements, "\n".join(
        str(exact_oracle.minimize(device, disagreement)) for disagreement in disagreements
    )


def flushed_late(form, name):
    """Return a wrong reference function, which flushes subnormals after rounding."""
    format = floats.FORMAT[name]
    plain = next(candidate for candidate in floats.arithmetic(name) if candidate.name == form.name.replace(".ftz", ""))

    def reference(*operands):
        result = plain.reference(*map(format.flush, operands))
        return format.flush(result) if isinstance(result, int) else result

    return reference


def rounded_twice(form, name):
    """Return a wrong reference function, which computes fma in double precision."""
    format, wide = floats.FORMAT[name], floats.FORMAT["f64"]

    def reference(a, b, c):
        total = reals.add(reals.multiply(format.number(a), format.number(b)), format.number(c))
        rounded = wide.bits(total)
        return format.bits(wide.number(rounded)) if isinstance(rounded, int) else format.nan

    return reference


@pytest.mark.parametrize(
    ("name", "family", "chosen", "wrong"),
    [
        ("f32", "single precision", re.compile(r"(mul|div|fma)\.r.\.ftz\.f32"), flushed_late),
        ("bf16", "half precision", re.compile(r"fma\.rn\.bf16"), rounded_twice),
    ],
)
def test_drawn_operands_reach_hard_cases_of_rounding(device, name, family, chosen, wrong):
    """Drawn operands show faults near the least normal number, and faults in the decision of ties."""
    forms = [replace(form, reference=wrong(form, name)) for form in families.ALL[family] if chosen.search(form.name)]
    programs = [draw_program(3, number, {family: forms}) for number in range(PROGRAMS)]
    assert len(exact_oracle.disagreements(device, programs)) >= 5


def another_bit(reference):
    """Return a reference function with a wrong lowest bit in its first result."""

    def wrong(*values):
        results = reference(*values)
        first, *others = results if isinstance(results, tuple) else (results,)
        return (first ^ 1 if isinstance(first, int) else first, *others)

    return wrong


@pytest.mark.parametrize("family", families.ALL)
def test_a_wrong_bit_is_found_and_its_line_named(device, family):
    wrong = {family: [replace(form, reference=another_bit(form.reference)) for form in families.ALL[family]]}
    disagreements = exact_oracle.disagreements(device, [draw_program(2, number, wrong) for number in range(20)])
    assert disagreements
    minimized = exact_oracle.minimize(device, disagreements[0]).program
    assert any(line.form in wrong[family] for line in minimized.lines)
    assert len(minimized.lines) <= len(disagreements[0].program.lines)


def test_recorded_statements_are_accepted_as_by_ptxas(device):
    """ptxas and the device accept the same recorded statements, except for two short lists."""
    lines = ANSWERS.read_text().splitlines()
    statements = [line[2:] for line in lines]
    by_virtual_gpu = ptxas_oracle.accepted_by_virtual_gpu(device, statements)
    answers = zip(statements, [line[0] == "+" for line in lines], by_virtual_gpu, strict=True)
    assert [answer for answer in answers if ptxas_oracle.differs(*answer)] == []
    assert sum(by_virtual_gpu) > 500


def test_statements_require_the_versions_of_ptxas(device):
    """The device wants the PTX version and architecture that ptxas wants, for each modifier of each instruction."""
    lines = [line.split(" ", 2) for line in REQUIREMENTS.read_text().splitlines()]
    needs = [(int(version), int(target), text) for version, target, text in lines]
    assert sum(version > 0 or target > 0 for version, target, _ in needs) > 150
    assert ptxas_oracle.wrong_requirements(device, needs) == []


def test_generic_addresses_that_a_variable_names(device):
    """ld without a state space accepts the names of shared and local variables, but not of constants."""
    head = ".const .align 4 .b32 c = 7;\n"
    body = ".shared .align 4 .b32 s; .local .align 4 .b32 own; st.shared.b32 [s], 5; st.local.b32 [own], 6; "
    operands = np.zeros(1, np.uint32)
    results = device.evaluate(
        f"{body} ld.b32 %d, [s]; ld.b32 %e, [own]; ld.const.b32 %f, [c];", [np.uint32] * 3, operands, head=head
    )
    assert [result.tolist() for result in results] == [[5], [6], [7]]
    for wrong in ("ld.b32 %r1, [c];", "ld.global.b32 %r1, [s];", "ld.shared.b32 %r1, [own];"):
        assert not ptxas_oracle.accepted_by_virtual_gpu(device, [wrong])[0]


@pytest.mark.skipif(not cuda_oracle.NVCC, reason="nvcc was not found")
def test_random_functions_compiled_by_nvcc(device, tmp_path):
    assert cuda_oracle.disagreements(device, 1, 30, tmp_path) == []
