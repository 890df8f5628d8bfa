"""Reading the kernels of a library: what is read, what is reported of it, and how damaged files are handled."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from library_builders import ARCHS, ELF, LZ4, PTX, ZSTD, cubin, element, fatbin, library, ptx, tensorflow_like_library

from tfdet.audit import fatbin as fatbins
from tfdet.audit import sass_dataflow, scan
from tfdet.audit.model import KINDS, LibraryAudit
from tfdet.audit.sass_dataflow import SassDataflow
from tfdet.audit.scan import scan_library

ALL_ARCHITECTURES = ("compute_70", "sm_70", "sm_80", "sm_90")


@pytest.fixture
def scan_bytes(tmp_path: Path):
    """Return a function scan_bytes(bytes of a library, architectures) -> LibraryAudit."""

    def scanned(content: bytes, archs=None) -> LibraryAudit:
        path = tmp_path / "lib.so"
        path.write_bytes(content)
        return scan_library(path, "lib.so", archs)

    return scanned


def messages(library_audit: LibraryAudit) -> list[str]:
    return [fault.message for fault in library_audit.faults]


def test_code_that_is_too_long_to_follow_is_unresolved(scan_bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scanner's limit of visits is used up in each of its analyses in turn."""
    for visits in (0, 1, 2, 4, 8):
        monkeypatch.setattr(sass_dataflow, "_MAX_STEPS", visits)
        result = scan_bytes(tensorflow_like_library(), ("sm_70",))
        assert not result.faults
        assert result.kernel_counts == {"sm_70": 16}
    monkeypatch.setattr(sass_dataflow, "_MAX_STEPS", 0)
    reasons = {kernel.reason for kernel in scan_bytes(tensorflow_like_library(), ("sm_70",)).kernels}
    assert "CAS: too much code to follow" in reasons


def test_every_kernel_has_the_verdict_that_its_name_begins_with(scan_bytes) -> None:
    result = scan_bytes(tensorflow_like_library())
    assert not result.faults
    assert (result.sass, result.ptx) == (("sm_70", "sm_80", "sm_90"), ("compute_70",))
    assert result.kernel_counts == dict.fromkeys(ALL_ARCHITECTURES, 16)  # no_device is no kernel
    for arch in ALL_ARCHITECTURES:
        verdicts = {
            kernel.name: (kernel.order_dependent, kernel.reason) for kernel in result.kernels if kernel.arch == arch
        }
        assert len(verdicts) == 16 and "nothing" not in verdicts
        assert {name: verdict for name, (verdict, _) in verdicts.items()} == {
            name: name.split("_")[0] for name in verdicts
        }, verdicts
        assert "add f32" in verdicts["yes_add_f32"][1] and "f16" in verdicts["yes_add_f16"][1]
        assert verdicts["no_device"][1].endswith("the integer add's old value is used")


def test_a_register_written_by_a_called_function_is_found_at_the_call() -> None:
    # Opcodes of FADD, CALL.REL, EXIT and RET; 0x009 is FMNMX, and the guard `always` is PT.
    always, add, call, leave, back = 7 << 12, 0x021, 0x144, 0x14D, 0x150
    code = [call | 2 * 4 << 34, 0x009, leave, add | 4 << 16, back]  # calls what stands at 3, which writes R4
    calls = SassDataflow(b"".join(struct.pack("<2Q", low | always, 7 << 23) for low in code), 70)
    (writer,) = calls.definitions(4, at=1)
    assert writer > 4 and calls.opcode[writer] == add, "a copy, behind the code"
    assert calls.position(writer) == 0


def test_atomics_are_counted_by_kind(scan_bytes) -> None:
    counts = {(kernel.arch, kernel.name): kernel.atomics for kernel in scan_bytes(tensorflow_like_library()).kernels}
    assert counts["compute_70", "no_device"] == {"int_add": 2, "int_minmax": 1}
    for arch in ("sm_70", "sm_80", "sm_90"):
        assert counts[arch, "no_device"] == {"int_add": 2, "int_minmax": 1}
        assert counts[arch, "unresolved_lock"] == {"cas": 1, "exch": 1}
    assert all(kind in KINDS for atomics in counts.values() for kind in atomics)


def test_copies_in_one_architecture_are_one_kernel(scan_bytes) -> None:
    doubled = scan_bytes(library(fatbin(element(ELF, 70, cubin(70)), element(ELF, 70, cubin(70), LZ4))))
    single = scan_bytes(library(fatbin(element(ELF, 70, cubin(70)))))
    assert doubled.kernel_counts == single.kernel_counts
    assert [k.atomics["cas"] for k in doubled.kernels if k.name == "yes_add_f32"] == [
        2 * k.atomics["cas"] for k in single.kernels if k.name == "yes_add_f32"
    ]


def test_only_the_asked_architectures_are_read_but_all_are_listed(scan_bytes) -> None:
    result = scan_bytes(tensorflow_like_library(), {"sm_80"})
    assert {kernel.arch for kernel in result.kernels} == {"sm_80"} and list(result.kernel_counts) == ["sm_80"]
    assert result.sass == ("sm_70", "sm_80", "sm_90")


def test_older_machine_code_is_listed_and_its_kernels_counted_but_not_decoded(scan_bytes) -> None:
    result = scan_bytes(library(fatbin(element(ELF, 61, cubin(70)), element(PTX, 61, ptx(), LZ4))))
    assert result.sass == ("sm_61",) and result.kernel_counts == {"sm_61": 16, "compute_61": 16}
    assert {kernel.arch for kernel in result.kernels} == {"compute_61"}


def test_several_processes_find_the_same_as_one(scan_bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    single = scan_bytes(tensorflow_like_library())
    monkeypatch.setattr(scan, "_MIN_PARALLEL_BYTES", 0)
    assert scan_bytes(tensorflow_like_library()) == single


def test_a_library_without_gpu_code_is_empty_and_no_fault(scan_bytes) -> None:
    result = scan_bytes(library(b"host code", name=b".text"))
    assert (result.kernels, result.sass, result.faults) == ((), (), ())


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "not an ELF file"),
        (b"#!/bin/sh\n" * 20, "not an ELF file"),
        (library(b"", machine=183), "an ELF file for machine 183"),
        (b"\x7fELF\x01\x01" + bytes(100), "not a 64-bit"),
        (tensorflow_like_library()[:-300], "truncated"),
        (tensorflow_like_library()[:5000], "truncated"),
    ],
    ids=["empty", "text", "aarch64", "32-bit", "cut tail", "cut"],
)
def test_a_file_that_is_no_library_is_one_fault(scan_bytes, content: bytes, message: str) -> None:
    result = scan_bytes(content)
    assert len(result.faults) == 1 and message in result.faults[0].message
    assert not result.kernels


def test_a_damaged_element_is_named_with_its_offset_and_the_others_are_read(scan_bytes) -> None:
    good, bad = element(ELF, 70, cubin(70)), bytearray(element(ELF, 80, cubin(80), LZ4))
    bad[64:200] = bytes(136)
    result = scan_bytes(library(fatbin(bytes(bad), good)))
    assert [(fault.offset, fault.message.split(":")[0]) for fault in result.faults] == [(64 + 16 + 64, "sm_80")]
    assert {kernel.arch for kernel in result.kernels} == {"sm_70"}


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
def test_an_unreadable_element_is_reported(scan_bytes, broken: bytes, message: str) -> None:
    result = scan_bytes(library(fatbin(broken) + fatbin(element(ELF, 70, cubin(70)))))
    assert len(result.faults) == 1 and message in result.faults[0].message, result.faults
    assert {kernel.arch for kernel in result.kernels} == {"sm_70"}


def test_reading_continues_after_a_container_with_a_false_length(scan_bytes) -> None:
    first = bytearray(fatbin(element(ELF, 80, cubin(80))))
    struct.pack_into("<Q", first, 8, 2**63)
    result = scan_bytes(library(bytes(first) + fatbin(element(ELF, 70, cubin(70)))))
    assert "does not fit its section" in messages(result)[0]
    assert {kernel.arch for kernel in result.kernels} == {"sm_70", "sm_80"}


def test_elements_have_the_offsets_of_their_payloads() -> None:
    content = tensorflow_like_library()
    data, start = memoryview(content), content.find(fatbins.MAGIC_BYTES)
    faults: list[object] = []
    elements = list(fatbins.iter_elements(data, start, content.rfind(b"\0.nv_fatbin") - start, faults.append))
    assert not faults and [(e.kind, e.arch, e.compression) for e in elements] == [
        ("ptx", 70, "lz4"), ("elf", 70, "none"), ("elf", 80, "lz4"), ("elf", 90, "zstd")]  # fmt: skip
    stored = elements[1]
    assert bytes(data[stored.payload_offset : stored.payload_offset + stored.size]) == cubin(70)
    assert elements[2].offset > stored.payload_offset + stored.size
    for item, arch in zip(elements[1:], ARCHS, strict=True):
        assert bytes(fatbins.read_payload(data, item)) == cubin(arch)
