"""Random programs of PTX, beside what exact arithmetic makes of them: python tests/vgpu/fuzz.py runs more of them."""

from dataclasses import replace

import pytest
from fuzzing import exact_oracle, families
from fuzzing.programs import draw_program

PROGRAMS = 400  # in CI; before a release 100,000 by the command


def test_random_programs(device):
    found = exact_oracle.disagreements(device, [draw_program(1, number, families.ALL) for number in range(PROGRAMS)])
    assert not found, "\n".join(str(exact_oracle.minimize(device, one)) for one in found)


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
