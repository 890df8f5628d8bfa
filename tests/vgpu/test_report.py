"""VGPU_REPORT names the atomics whose order a result may depend on, and no others."""

import json

import numpy as np
import pytest
from virtual_device import kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

GLOBAL = """ld.param.u64 %l0, [p0]; and.b32 %r2, %t, MASK; mul.wide.u32 %l1, %r2, 4; add.u64 %l0, %l0, %l1;
mov.b32 %r1, 0f3F800000;
ATOMIC"""
SHARED = """mov.u64 %l0, word; and.b32 %r2, %t, MASK; mul.wide.u32 %l1, %r2, 4; add.u64 %l0, %l0, %l1;
mov.b32 %r1, 0f3F800000;
ATOMIC"""
CASES = {
    "red.global.add.f32 [%l0], %r1;": "rounding",
    "atom.global.add.f32 %r3, [%l0], %r1;": "rounding",
    "atom.global.exch.b32 %r3, [%l0], %t;": "last_writer",
    "atom.global.cas.b32 %r3, [%l0], 0, %t;": "last_writer",
    "atom.global.add.u32 %r3, [%l0], 1;": "returns_old",
    "red.global.add.u32 [%l0], 1;": None,
    "red.global.max.u32 [%l0], %t;": None,
}


def report(device, tmp_path, monkeypatch, text, schedule="random:1", grid=2, block=64):
    """Run a kernel, and return the report's line on its launch.

    `order_dependent` has a finding for each line of PTX; its `most` are the addresses with the most atomics.
    """
    path = tmp_path / "report"
    monkeypatch.setenv("VGPU_REPORT", str(path))
    code, _, stderr = device.run_in_child(text, [np.zeros(64, np.uint32)], schedule, grid=grid, block=block)
    assert code == 0, stderr
    (line,) = path.read_text().splitlines()
    return json.loads(line)


@pytest.mark.parametrize("atomic", CASES)
def test_atomics_at_one_address_from_several_threads(device, tmp_path, monkeypatch, atomic):
    text = kernel(GLOBAL.replace("MASK", "1").replace("ATOMIC", atomic), ["p0"])
    launch = report(device, tmp_path, monkeypatch, text)
    assert (launch["kernel"], launch["launch"], launch["grid"], launch["block"]) == ("k", 0, [2, 1, 1], [64, 1, 1])
    assert (launch["atomics"], launch["instructions"] > 0, launch["choices"] > 0) == (128, True, True)
    if CASES[atomic] is None:
        assert launch["order_dependent"] == []
        return
    (finding,) = launch["order_dependent"]
    assert finding["line"] == 1 + text[: text.index(atomic)].count("\n")
    assert (finding["order_sensitivity"], finding["atomics"], finding["addresses"]) == (CASES[atomic], 128, 2)
    assert [(address["space"], address["offset"], address["atomics"]) for address in finding["most"]] == [
        ("global", 0, 64),
        ("global", 4, 64),
    ]
    for address in finding["most"]:
        first, second = address["threads"]
        assert first != second
        assert first % 2 == second % 2 == address["offset"] // 4


def test_atomics_at_distinct_addresses_are_not_named(device, tmp_path, monkeypatch):
    text = kernel(GLOBAL.replace("MASK", "63").replace("ATOMIC", "red.global.add.f32 [%l0], %r1;"), ["p0"])
    assert report(device, tmp_path, monkeypatch, text, grid=1)["order_dependent"] == []


def test_shared_memory_is_each_block_s_own(device, tmp_path, monkeypatch):
    body = SHARED.replace("MASK", "63").replace("ATOMIC", "red.shared.add.f32 [%l0], %r1;")
    text = kernel(body, ["p0"], head=".shared .align 4 .b8 word[256];")
    assert report(device, tmp_path, monkeypatch, text, grid=4)["order_dependent"] == []
    body = SHARED.replace("MASK", "31").replace("ATOMIC", "red.shared.add.f32 [%l0], %r1;")
    monkeypatch.setenv("VGPU_MEMORY_MIB", "64")
    (tmp_path / "report").unlink()
    (finding,) = report(
        device, tmp_path, monkeypatch, kernel(body, ["p0"], head=".shared .align 4 .b8 word[256];"), grid=4
    )["order_dependent"]
    assert (finding["addresses"], finding["atomics"], finding["most"][0]["space"]) == (128, 256, "shared")


def test_the_number_of_findings_is_bounded(device, tmp_path, monkeypatch):
    body = GLOBAL.replace("MASK", "63").replace("ATOMIC", "red.global.add.f32 [%l0], %r1;\n" * 40)
    launch = report(device, tmp_path, monkeypatch, kernel(body, ["p0"]))
    assert len(launch["order_dependent"]) == 16
    assert all(len(finding["most"]) == 4 for finding in launch["order_dependent"])


def test_the_report_changes_no_result(device, tmp_path, monkeypatch):
    text = kernel(
        """ld.param.u64 %l0, [p0]; and.b32 %r2, %t, 7; mul.wide.u32 %l1, %r2, 4; add.u64 %l0, %l0, %l1;
        cvt.rn.f32.u32 %r1, %i; rcp.rn.f32 %r1, %r1; @%p0 exit; red.global.add.f32 [%l0], %r1;""".replace(
            "rcp", "add.u32 %r3, %i, 1; cvt.rn.f32.u32 %r1, %r3; rcp"
        ),
        ["p0"],
    )
    for schedule in ("serial", "random:4", "adversary:4"):
        plain = device.run_in_child(text, [np.zeros(64, np.uint32)], schedule, grid=4, block=64)[1][0]
        monkeypatch.setenv("VGPU_REPORT", str(tmp_path / "other"))
        monkeypatch.setenv("VGPU_MEMORY_TRACE", f"0:{tmp_path / 'trace'}")
        watched = device.run_in_child(text, [np.zeros(64, np.uint32)], schedule, grid=4, block=64)[1][0]
        monkeypatch.delenv("VGPU_REPORT")
        monkeypatch.delenv("VGPU_MEMORY_TRACE")
        assert plain.tolist() == watched.tolist()


def test_a_report_that_cannot_be_written_ends_the_program(device, monkeypatch):
    """Launches that a report lacks would pass for proved."""
    monkeypatch.setenv("VGPU_REPORT", "/dev/full")
    text = kernel("ld.param.u64 %l0, [p0]; st.global.u32 [%l0], 1;", ["p0"])
    with pytest.raises(AssertionError, match="ended with 2: vgpu: VGPU_REPORT"):
        device.run_in_child(text, [np.zeros(64, np.uint32)], "serial", grid=1, block=1)
