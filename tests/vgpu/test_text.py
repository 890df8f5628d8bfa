"""The lexical rules of PTX: which tokens need a blank between them."""

import numpy as np
import pytest


def test_directives_without_blanks_between_them(device):
    """Inline assembly in the headers for f16 has this form."""
    x = np.arange(64, dtype=np.uint32)
    body = "{.reg.b32 a,b;.reg.u64 c;mov.b32 a, %x; add.u32 b, a, a; mov.b32 %d, b;}"
    assert device.evaluate(body, [np.uint32], x).tolist() == (2 * x).tolist()


def test_dots_of_modifiers_and_literals_are_distinguished(device):
    x = np.arange(64, dtype=np.uint32)
    body = "cvt.rn.f32.u32 %r1, %x; fma.rn.f32 %r1, %r1, 0f40000000, 0f3F800000; cvt.rzi.u32.f32 %d, %r1;"
    assert device.evaluate(body, [np.uint32], x).tolist() == (2 * x + 1).tolist()


@pytest.mark.parametrize(
    ("version", "target", "accepted"),
    [
        *[(version, "sm_70", True) for version in ("6.0", "8.6", "9.0")],
        *[("8.6", target, True) for target in ("sm_52", "compute_70", "sm_70, texmode_independent")],
        *[(version, "sm_70", False) for version in ("8", "new", "", "sm_70")],
        *[("8.6", target, False) for target in ("foo", "sm", "sm_", "8.6", "", "texmode_independent, sm_70")],
    ],
)
def test_a_text_names_a_version_and_a_target(device, version, target, accepted):
    """As ptxas 13 accepts and refuses them."""
    text = f".version {version}\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"
    assert device.load(text)[0] == (0 if accepted else 218)
