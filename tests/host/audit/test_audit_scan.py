"""A library to its kernels: what is read, what is said of it, and what happens to damaged files."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from library_builders import ARCHS, ELF, LZ4, PTX, ZSTD, cubin, element, fatbin, library, ptx, usual

from tfdet.audit import fatbin as fatbins
from tfdet.audit import sass_dataflow, scan
from tfdet.audit.model import KINDS, LibraryAudit
from tfdet.audit.sass_dataflow import SassDataflow
from tfdet.audit.scan import scan_library

EVERYWHERE = ("compute_70", "sm_70", "sm_80", "sm_90")


@pytest.fixture
def audit(tmp_path: Path):
    def scanned(content: bytes, archs=None) -> LibraryAudit:
        path = tmp_path / "lib.so"
        path.write_bytes(content)
        return scan_library(path, "lib.so", archs)

    return scanned


def messages(found: LibraryAudit) -> list[str]:
    return [fault.message for fault in found.faults]


def test_code_that_is_too_long_to_follow_is_unresolved(audit, monkeypatch: pytest.MonkeyPatch) -> None:
    """At whichever of its questions the visits are used up."""
    for visits in (0, 1, 2, 4, 8):
        monkeypatch.setattr(sass_dataflow, "_MAX_STEPS", visits)
        found = audit(usual(), ("sm_70",))
        assert not found.faults
        assert found.kernel_counts == {"sm_70": 16}
    monkeypatch.setattr(sass_dataflow, "_MAX_STEPS", 0)
    reasons = {kernel.reason for kernel in audit(usual(), ("sm_70",)).kernels}
    assert "CAS: too much code to follow" in reasons


def test_every_kernel_is_judged_as_its_name_says_in_all_forms_of_code(audit) -> None:
    found = audit(usual())
    assert not found.faults
    assert (found.sass, found.ptx) == (("sm_70", "sm_80", "sm_90"), ("compute_70",))
    assert found.kernel_counts == dict.fromkeys(EVERYWHERE, 16)  # no_device is no kernel
    for arch in EVERYWHERE:
        verdicts = {
            kernel.name: (kernel.order_dependent, kernel.reason) for kernel in found.kernels if kernel.arch == arch
        }
        assert len(verdicts) == 16 and "nothing" not in verdicts
        assert {name: verdict for name, (verdict, _) in verdicts.items()} == {
            name: name.split("_")[0] for name in verdicts
        }, verdicts
        assert "add f32" in verdicts["yes_add_f32"][1] and "f16" in verdicts["yes_add_f16"][1]
        assert verdicts["no_device"][1].endswith("the integer add's old value is used")


def test_what_a_called_function_writes_is_found_where_it_is_called() -> None:
    always, add, call, leave, back = 7 << 12, 0x021, 0x144, 0x14D, 0x150
    code = [call | 2 * 4 << 34, 0x009, leave, add | 4 << 16, back]  # calls what stands at 3, which writes R4
    found = SassDataflow(b"".join(struct.pack("<2Q", low | always, 7 << 23) for low in code), 70)
    (writer,) = found.definitions(4, at=1)
    assert writer > 4 and found.opcode[writer] == add, "a copy, behind the code"
    assert found.position(writer) == 0


def test_atomics_are_counted_by_kind(audit) -> None:
    found = {(kernel.arch, kernel.name): kernel.atomics for kernel in audit(usual()).kernels}
    assert found["compute_70", "no_device"] == {"int_add": 2, "int_minmax": 1}
    for arch in ("sm_70", "sm_80", "sm_90"):
        assert found[arch, "no_device"] == {"int_add": 2, "int_minmax": 1}
        assert found[arch, "unresolved_lock"] == {"cas": 1, "exch": 1}
    assert all(kind in KINDS for atomics in found.values() for kind in atomics)


def test_copies_in_one_architecture_are_one_kernel(audit) -> None:
    twice = audit(library(fatbin(element(ELF, 70, cubin(70)), element(ELF, 70, cubin(70), LZ4))))
    once = audit(library(fatbin(element(ELF, 70, cubin(70)))))
    assert twice.kernel_counts == once.kernel_counts
    assert [k.atomics["cas"] for k in twice.kernels if k.name == "yes_add_f32"] == [
        2 * k.atomics["cas"] for k in once.kernels if k.name == "yes_add_f32"
    ]


def test_only_the_asked_architectures_are_read_but_all_are_listed(audit) -> None:
    found = audit(usual(), {"sm_80"})
    assert {kernel.arch for kernel in found.kernels} == {"sm_80"} and list(found.kernel_counts) == ["sm_80"]
    assert found.sass == ("sm_70", "sm_80", "sm_90")


def test_older_machine_code_is_listed_and_its_kernels_counted_but_not_decoded(audit) -> None:
    found = audit(library(fatbin(element(ELF, 61, cubin(70)), element(PTX, 61, ptx(), LZ4))))
    assert found.sass == ("sm_61",) and found.kernel_counts == {"sm_61": 16, "compute_61": 16}
    assert {kernel.arch for kernel in found.kernels} == {"compute_61"}


def test_processes_find_the_same_as_one_alone(audit, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = audit(usual())
    monkeypatch.setattr(scan, "_MIN_PARALLEL_BYTES", 0)
    assert audit(usual()) == alone


def test_a_library_without_gpu_code_is_empty_and_no_fault(audit) -> None:
    found = audit(library(b"host code", name=b".text"))
    assert (found.kernels, found.sass, found.faults) == ((), (), ())


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "not an ELF file"),
        (b"#!/bin/sh\n" * 20, "not an ELF file"),
        (library(b"", machine=183), "an ELF file for machine 183"),
        (b"\x7fELF\x01\x01" + bytes(100), "not a 64-bit"),
        (usual()[:-300], "truncated"),
        (usual()[:5000], "truncated"),
    ],
    ids=["empty", "text", "aarch64", "32-bit", "cut tail", "cut"],
)
def test_a_file_that_is_no_library_is_one_fault(audit, content: bytes, message: str) -> None:
    found = audit(content)
    assert len(found.faults) == 1 and message in found.faults[0].message
    assert not found.kernels


def test_a_damaged_element_is_named_with_its_offset_and_the_others_are_read(audit) -> None:
    good, bad = element(ELF, 70, cubin(70)), bytearray(element(ELF, 80, cubin(80), LZ4))
    bad[64:200] = bytes(136)
    found = audit(library(fatbin(bytes(bad), good)))
    assert [(fault.offset, fault.message.split(":")[0]) for fault in found.faults] == [(64 + 16 + 64, "sm_80")]
    assert {kernel.arch for kernel in found.kernels} == {"sm_70"}


@pytest.mark.parametrize(
    "broken, message",
    [
        (element(ELF, 80, cubin(80), LZ4, declared=2**40), "more than the"),
        (element(ELF, 80, cubin(80), LZ4, declared=400_000_000), "which cannot be"),
        (element(ELF, 80, cubin(80), LZ4, declared=200_000), "declares 200000 bytes, holds"),
        (element(ELF, 80, bytes(10**7), ZSTD, declared=5000), "holds 5001 or more"),
        (element(ELF, 80, cubin(80), ZSTD)[:-100] + bytes(100), "damaged zstd"),
        (element(ELF, 80, cubin(80), LZ4).replace(b"\x11\x20", b"\x11\x40", 1), "unknown compression (flags 0x4011)"),
        (element(64, 80, cubin(80)), "unknown kind 64"),
        (element(ELF, 80, b"no cubin" * 20), "not an ELF file"),
        (element(ELF, 80, library(b"")), "not CUDA"),
    ],
    ids=["huge", "beyond LZ4", "other size", "zstd bomb", "zstd", "compression", "kind", "no ELF", "host ELF"],
)
def test_what_cannot_be_read_is_said(audit, broken: bytes, message: str) -> None:
    found = audit(library(fatbin(broken) + fatbin(element(ELF, 70, cubin(70)))))
    assert len(found.faults) == 1 and message in found.faults[0].message, found.faults
    assert {kernel.arch for kernel in found.kernels} == {"sm_70"}


def test_reading_goes_on_behind_a_container_that_lies_about_its_length(audit) -> None:
    first = bytearray(fatbin(element(ELF, 80, cubin(80))))
    struct.pack_into("<Q", first, 8, 2**63)
    found = audit(library(bytes(first) + fatbin(element(ELF, 70, cubin(70)))))
    assert "does not fit its section" in messages(found)[0]
    assert {kernel.arch for kernel in found.kernels} == {"sm_70", "sm_80"}


def test_elements_say_where_they_lie_so_that_others_can_rewrite_them() -> None:
    data = memoryview(usual())
    start = data.obj.find(fatbins.MAGIC_BYTES)
    faults: list[object] = []
    found = list(fatbins.iter_elements(data, start, data.obj.rfind(b"\0.nv_fatbin") - start, faults.append))
    assert not faults and [(e.kind, e.arch, e.compression) for e in found] == [
        ("ptx", 70, "lz4"), ("elf", 70, "none"), ("elf", 80, "lz4"), ("elf", 90, "zstd")]  # fmt: skip
    stored = found[1]
    assert bytes(data[stored.payload_offset : stored.payload_offset + stored.size]) == cubin(70)
    assert found[2].offset > stored.payload_offset + stored.size
    for one, arch in zip(found[1:], ARCHS, strict=True):
        assert bytes(fatbins.read_payload(data, one)) == cubin(arch)
