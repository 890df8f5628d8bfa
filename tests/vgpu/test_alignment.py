"""Variables have the alignment of their declarations, in every lane."""

import numpy as np
import pytest
from virtual_device import kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

OWN_ELEMENT = "ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 8; add.u64 %l0, %l0, %l1;"


def addresses(device, body, space, head="", **options):
    """Return the generic address of the variable `v` in each of 64 threads."""
    text = f"{OWN_ELEMENT} {body} mov.u64 %l2, v; cvta.{space}.u64 %l2, %l2; st.global.u64 [%l0], %l2;"
    code, (values,) = device.run(kernel(text, ["p0"], head=head), [np.zeros(64, np.uint64)], block=64, **options)
    assert code == 0
    return values


@pytest.mark.parametrize("align", [1, 4, 16, 64, 256, 4096])
def test_local_variables_are_aligned_in_each_lane(device, align):
    values = addresses(device, f".local .b8 odd[3]; .local .align {align} .b8 v[5]; st.local.u8 [odd], %h0;", "local")
    assert not (values % align).any() and len(set(values.tolist())) == 64


@pytest.mark.parametrize("align", [1, 16, 64, 1024])
@pytest.mark.parametrize("where", ["function", "module"])
def test_shared_variables_are_aligned(device, align, where):
    declaration = f".shared .align {align} .b8 v[40];"
    head, body = ("\n" + declaration, "") if where == "module" else ("", declaration)
    values = addresses(device, ".shared .b8 odd[3]; st.shared.u8 [odd], %h0;" + body, "shared", head)
    assert not (values % align).any() and len(set(values.tolist())) == 1


def test_dynamic_shared_memory_is_aligned(device):
    head = "\n.extern .shared .align 128 .b8 v[];"
    values = addresses(device, ".shared .b8 odd[3]; st.shared.u8 [odd], %h0;", "shared", head, shared=64)
    assert not (values % 128).any()


@pytest.mark.parametrize("align", [0, 48])
def test_invalid_alignments_are_refused(device, align):
    code, _ = device.run(
        kernel(f".local .align {align} .b8 v[5]; st.local.u8 [v], %h0;", ["p0"]), [np.zeros(1, np.uint32)]
    )
    assert code != 0
