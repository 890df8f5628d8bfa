"""The scanner agrees with nvdisasm on every form of PTX atomic, on every architecture, instruction by instruction."""

from __future__ import annotations

from pathlib import Path

import audit_oracle
import pytest
from library_builders import ARCHS, DATA, ELF, PTX, cubin, element, fatbin, library

from tfdet.audit import sass, scan
from tfdet.audit.cubin import read_cubin

ALL_ARCHS = (70, 75, 80, 86, 89, 90)
# {type: the letter of the register that holds it}; LOAD_TYPES: {letter: the type that is loaded into it}
REGISTERS = {"b16": "h", "f16": "h", "bf16": "h", "b32": "r", "u32": "r", "s32": "r", "f16x2": "r", "bf16x2": "r",
             "f32": "f", "b64": "l", "u64": "l", "s64": "l", "f64": "d"}  # fmt: skip
LOAD_TYPES = {"h": "b16", "r": "b32", "f": "f32", "l": "b64", "d": "f64"}


def forms(arch: int) -> list[tuple[str, str]]:
    """Return (operation, type) of every scalar atomic that this architecture has."""
    pairs = [(op, t) for op in ("and", "or", "xor", "exch", "cas") for t in ("b32", "b64")] + [("cas", "b16")]
    pairs += [("add", t) for t in ("u32", "s32", "u64", "f32", "f64")] + [("inc", "u32"), ("dec", "u32")]
    pairs += [("add.noftz", t) for t in ("f16", "f16x2")]
    pairs += [(op, t) for op in ("min", "max") for t in ("u32", "s32", "u64", "s64")]
    return pairs + ([("add.noftz", "bf16"), ("add.noftz", "bf16x2")] if arch >= 90 else [])


def scalar_kernels(arch: int) -> list[str]:
    """Return one PTX kernel for each form, memory space, and use of the old value."""
    kernels = []
    for space, address in ((".global", "%a0"), (".shared", "smem"), ("", "%a0")):
        for op, dtype in forms(arch):
            letter = REGISTERS[dtype]
            first, two, three = (f"%{letter}{n}" for n in (1, 2, 3))
            load = f"ld.global.{LOAD_TYPES[letter]} {first}, [%a1]; ld.global.{LOAD_TYPES[letter]} {two}, [%a1+8];"
            swap = f", {two}" if op == "cas" else ""
            body = f"{load} atom{space}.{op}.{dtype} {three}, [{address}], {first}{swap};"
            kernels.append(f"{body} st.global.{LOAD_TYPES[letter]} [%a1], {three};")
            if op not in ("exch", "cas"):
                kernels.append(f"{load} red{space}.{op}.{dtype} [{address}], {first};")
    return kernels


def special_kernels(arch: int) -> list[str]:
    """Return kernels of forms that only some architectures have, and of similar instructions that are not atomics."""
    kernels = ["red.shared.add.u32 [smem], 1;", "ld.global.u32 %r1, [%a1]; mov.u32 %r2, smem; add.u32 %r2, %r2, %r1;"
               " red.shared.add.u32 [%r2], 1; atom.shared.add.u32 %r3, [%r2+4], %r1; st.global.u32 [%a0], %r3;",
               "setp.ne.s64 %p1, %a0, 0; barrier.red.popc.u32 %r1, 0, %p1; st.global.u32 [%a0], %r1;"]  # fmt: skip
    if arch >= 80:
        kernels.append("ld.global.u32 %r1, [%a1]; redux.sync.add.u32 %r2, %r1, -1; st.global.u32 [%a0], %r2;")
        kernels.append("mbarrier.arrive.shared.b64 %l1, [smem]; st.global.b64 [%a1], %l1;")
    if arch >= 90:
        for op in ("add.noftz", "min.noftz", "max.noftz"):
            for dtype, letter in (("f16", "h"), ("bf16", "h"), ("f16x2", "r"), ("bf16x2", "r")):
                load = " ".join(f"ld.global.{LOAD_TYPES[letter]} %{letter}{n}, [%a1+{4 * n}];" for n in (1, 2))
                kernels.append(f"{load} red.global.v2.{dtype}.{op} [%a0], {{%{letter}1, %{letter}2}};")
        floats = " ".join(f"ld.global.f32 %f{n}, [%a1+{4 * n}];" for n in (1, 2, 3, 4))
        four = "{%f1, %f2, %f3, %f4}"
        kernels.append(f"{floats} atom.global.v4.f32.add {four}, [%a0], {four}; st.global.f32 [%a1], %f2;")
        bulk = "mov.u32 %r1, smem; cp.reduce.async.bulk.global.shared::cta.bulk_group"
        kernels += [f"{bulk}.add.{type_name} [%a0], [%r1], 16;" for type_name in ("u32", "s32", "u64", "f32", "f64")]
        kernels += [f"{bulk}.add.noftz.{type_name} [%a0], [%r1], 16;" for type_name in ("f16", "bf16")]
        kernels += [f"{bulk}.{form} [%a0], [%r1], 16;" for form in ("min.f16", "max.s64", "inc.u32", "xor.b64")]
        kernels.append("mov.u32 %r1, smem; red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"
                       ".add.u32 [%r1], %r2, [smem];")  # fmt: skip
        kernels.append("ld.global.f32 %f1, [%a1]; multimem.red.relaxed.gpu.global.add.f32 [%a0], %f1;")
    return kernels


def ptx_module(arch: int) -> str:
    """Return a PTX module with a kernel for each body."""
    head = f".version 8.4\n.target sm_{arch}\n.address_size 64\n.shared .align 16 .b8 smem[64];\n"
    return head + "\n".join(
        f".visible .entry kernel_{number}(.param .u64 p, .param .u64 q) {{ .reg .pred %p<3>; .reg .b64 %a<3>;"
        " .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %l<9>; .reg .f64 %d<9>;"
        f" ld.param.u64 %a0, [p]; ld.param.u64 %a1, [q];\n{body}\nret; }}"
        for number, body in enumerate(scalar_kernels(arch) + special_kernels(arch))
    )


TENSOR = """.version 8.4\n.target sm_90\n.address_size 64\n.shared .align 128 .b8 smem[64];
.visible .entry tensor(.param .u64 p) { .reg .b64 %a<2>; .reg .b32 %r<3>; ld.param.u64 %a0, [p]; mov.u32 %r1, smem;
mov.u32 %r2, 0; cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%a0, {%r2}], [%r1]; ret; }
"""


def test_a_reduction_whose_type_is_not_in_the_code_is_never_called_integer(tmp_path: Path) -> None:
    content = audit_oracle.assemble(TENSOR, 90, tmp_path / "tensor.cubin")
    path = tmp_path / "lib.so"
    path.write_bytes(library(fatbin(element(ELF, 90, content), element(PTX, 90, TENSOR.encode()))))
    result = scan.scan_library(path, "lib.so")
    assert {(kernel.arch, kernel.order_dependent) for kernel in result.kernels} == {
        ("sm_90", "unresolved"),
        ("compute_90", "unresolved"),
    }


def kinds_of_scanner(content: bytes, arch: int) -> dict[tuple[str, int], str]:
    """Return {(function, offset): kind of atomic}, as the scanner reads it."""
    parsed = read_cubin(memoryview(content))
    return {
        (parsed.name(atomic.function), atomic.number * sass.INSTRUCTION): sass.kind(atomic.low, atomic.high, arch)
        for atomic in scan.atomics(parsed, arch)
    }


def kinds_of_nvdisasm(cubin: Path) -> dict[tuple[str, int], str]:
    """Return {(function, offset): kind of atomic}, as nvdisasm reads it."""
    instructions = audit_oracle.disassemble(cubin)
    return {
        (name, offset): audit_oracle.kind_of_atomic(text)
        for name, offset, text in instructions
        if audit_oracle.ATOMIC.match(text)
    }


@pytest.mark.parametrize("arch", ALL_ARCHS)
def test_every_form_of_atomic_is_found_where_nvdisasm_shows_it_and_none_is_invented(arch: int, tmp_path: Path) -> None:
    target = tmp_path / "all.cubin"
    content = audit_oracle.assemble(ptx_module(arch), arch, target)
    expected = kinds_of_nvdisasm(target)
    assert len(expected) > 150
    assert kinds_of_scanner(content, arch) == expected


def test_every_kind_of_atomic_occurs_on_hopper(tmp_path: Path) -> None:
    """So the comparison above covers all kinds."""
    target = tmp_path / "all.cubin"
    audit_oracle.assemble(ptx_module(90), 90, target)
    floats = {f"float_add_{width}" for width in ("f16", "bf16", "f32", "f64")} | {"float_minmax"}
    integers = {"int_add", "int_minmax", "incdec", "bitop", "exch", "cas"}
    assert set(kinds_of_nvdisasm(target).values()) == floats | integers | {f"{kind}_shared" for kind in integers}


@pytest.mark.parametrize("arch", ARCHS)
def test_committed_cubins_are_what_ptxas_makes_of_their_source(arch: int, tmp_path: Path) -> None:
    text = (DATA / "loops.ptx").read_text().replace(".target sm_70", f".target sm_{arch}").replace("6.3", "8.4", 1)
    content = audit_oracle.assemble(text, arch, tmp_path / "loops.cubin")
    assert (
        kinds_of_scanner(content, arch)
        == kinds_of_scanner(cubin(arch), arch)
        == kinds_of_nvdisasm(tmp_path / "loops.cubin")
    )
