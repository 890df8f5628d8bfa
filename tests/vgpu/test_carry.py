"""The carry that sums, differences and products hand on, in any mixture, against Python's integers."""

import pytest
from operands import assert_same, operand_tuples, signed, size, unsigned, wrap

CHAIN_STARTS = ("add.cc", "sub.cc", "mad.lo.cc", "mad.hi.cc")
CHAIN_LINKS = ("addc.cc", "subc.cc", "madc.lo.cc", "madc.hi.cc")


def sum_with_carry(op, a, b, c, carry, type):
    """The result and the flag behind it: a difference is a + ~b + flag; its flag is set where nothing is borrowed."""
    bits = 8 * size(type)
    if "mad" in op:
        whole = signed(a, bits) * signed(b, bits) if type[0] == "s" else a * b
        first, second = wrap(whole >> (bits if ".hi" in op else 0), bits), c
    else:
        first, second = a, wrap(~b, bits) if op.startswith("sub") else b
    reads = op.split(".")[0].endswith("c")
    made = first + second + (carry if reads else op.startswith("sub"))
    return wrap(made, bits), made >> bits


@pytest.mark.parametrize("type", ["u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("start", CHAIN_STARTS)
def test_chains_of_any_instructions_with_carry(device, start, type):
    """Each may follow each, and all read one flag: 128-bit division as nvcc compiles it has addc behind sub.cc."""
    x, y, z = operand_tuples(type, 3, 600)
    for link in CHAIN_LINKS:
        ops = (start, link, "addc")
        texts = [
            f"{op}.{type} %{to}, %x, %y{', %z' if 'mad' in op else ''};" for op, to in zip(ops[:2], "de", strict=True)
        ]
        made = device.evaluate(" ".join(texts) + f" addc.{type} %f, 0, 0;", [unsigned(type)] * 3, x, y, z)
        wanted = []
        for a, b, c in zip(x.tolist(), y.tolist(), z.tolist(), strict=True):
            first, flag = sum_with_carry(start, a, b, c, 0, type)
            second, flag = sum_with_carry(link, a, b, c, flag, type)
            wanted.append((first, second, flag))
        for one, expected in zip(made, zip(*wanted, strict=True), strict=True):
            assert_same(one, expected, x, y, z)
