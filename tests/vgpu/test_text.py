"""The lexical rules of PTX: which tokens need a blank between them."""

import numpy as np


def test_directives_without_blanks_between_them(device):
    """Inline assembly in the headers for f16 has this form."""
    x = np.arange(64, dtype=np.uint32)
    body = "{.reg.b32 a,b;.reg.u64 c;mov.b32 a, %x; add.u32 b, a, a; mov.b32 %d, b;}"
    assert device.evaluate(body, [np.uint32], x).tolist() == (2 * x).tolist()


def test_dots_of_modifiers_and_literals_are_distinguished(device):
    x = np.arange(64, dtype=np.uint32)
    body = "cvt.rn.f32.u32 %r1, %x; fma.rn.f32 %r1, %r1, 0f40000000, 0f3F800000; cvt.rzi.u32.f32 %d, %r1;"
    assert device.evaluate(body, [np.uint32], x).tolist() == (2 * x + 1).tolist()
