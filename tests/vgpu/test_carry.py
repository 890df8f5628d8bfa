"""The carry flag of additions, subtractions and products, in any mixture, against Python's integers."""

import pytest
from operands import assert_same, operand_tuples, signed, size, unsigned, wrap

CHAIN_STARTS = ("add.cc", "sub.cc", "mad.lo.cc", "mad.hi.cc")
CHAIN_LINKS = ("addc.cc", "subc.cc", "madc.lo.cc", "madc.hi.cc")


def sum_with_carry(op, a, b, c, carry, type):
    """Return the result and the carry: a difference is a + ~b + carry, and sets the carry if it does not borrow."""
    bits = 8 * size(type)
    if "mad" in op:
        product = signed(a, bits) * signed(b, bits) if type[0] == "s" else a * b
        first, second = wrap(product >> (bits if ".hi" in op else 0), bits), c
    else:
        first, second = a, wrap(~b, bits) if op.startswith("sub") else b
    reads = op.split(".")[0].endswith("c")
    total = first + second + (carry if reads else op.startswith("sub"))
    return wrap(total, bits), total >> bits


@pytest.mark.parametrize("type", ["u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("start", CHAIN_STARTS)
def test_chains_of_instructions_with_carry(device, start, type):
    """All instructions share one flag: 128-bit division by nvcc has addc behind sub.cc."""
    x, y, z = operand_tuples(type, 3, 600)
    for link in CHAIN_LINKS:
        ops = (start, link, "addc")
        texts = [
            f"{op}.{type} %{target}, %x, %y{', %z' if 'mad' in op else ''};"
            for op, target in zip(ops[:2], "de", strict=True)
        ]
        total = device.evaluate(" ".join(texts) + f" addc.{type} %f, 0, 0;", [unsigned(type)] * 3, x, y, z)
        expected = []
        for a, b, c in zip(x.tolist(), y.tolist(), z.tolist(), strict=True):
            first, flag = sum_with_carry(start, a, b, c, 0, type)
            second, flag = sum_with_carry(link, a, b, c, flag, type)
            expected.append((first, second, flag))
        for result, column in zip(total, zip(*expected, strict=True), strict=True):
            assert_same(result, column, x, y, z)
