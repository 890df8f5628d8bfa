"""Kernel names, compute capabilities of builds, basic blocks of machine code, and the stored form of an audit."""

from __future__ import annotations

import struct

import pytest

from tfdet.audit.capability import capabilities
from tfdet.audit.kernel_names import family, signature
from tfdet.audit.sass_code import SassCode
from tfdet.base.paths import Project
from tfdet.store import audits as stored


def test_a_name_without_return_type_arguments_and_versions() -> None:
    crop = "void tensorflow::(anonymous namespace)::Crop<float, (A)1>(int, float const*)"
    assert signature(crop) == "tensorflow::(anonymous namespace)::Crop<float, (A)1>"
    assert family(signature(crop)) == "tensorflow::(anonymous namespace)::Crop"
    assert signature("void cub::CUB_200805_SM___CUDA_ARCH_LIST__::K<int>(int)") == "cub::K<int>"
    assert signature("void a::K<b::C<int> const, (x)2>(d<int>*)") == "a::K<b::C<int> const, (x)2>"
    assert signature("plain_c_name") == "plain_c_name"


def test_which_gpus_run_a_build() -> None:
    runs = {
        capability.compute: (capability.run_mode, capability.arch)
        for capability in capabilities(["sm_35", "sm_70", "sm_80"], ["compute_80"])
    }
    assert runs[3, 5] == ("native", "sm_35")
    assert runs[3, 7] == ("native", "sm_35")
    assert runs[6, 0] == ("no", "")  # older than the PTX, and of another generation than all machine code
    assert runs[7, 5] == ("native", "sm_70")
    assert runs[8, 9] == ("native", "sm_80")
    assert runs[9, 0] == ("jit", "compute_80")
    newer = {capability.compute: capability.run_mode for capability in capabilities(["sm_86"], ["compute_86"])}
    assert (newer[8, 0], newer[8, 6], newer[8, 9], newer[9, 0]) == ("no", "native", "native", "jit")
    only = {capability.compute: capability.run_mode for capability in capabilities(["sm_90a"], [])}
    assert only[9, 0] == "native"
    assert only[10, 0] == "no"


def test_ptx_of_a_family_compiles_for_its_major_version_alone() -> None:
    runs = {capability.compute: capability.run_mode for capability in capabilities([], ["compute_100f"])}
    assert (runs[10, 0], runs[12, 0], runs[9, 0]) == ("jit", "no", "no")
    runs = {capability.compute: capability.run_mode for capability in capabilities([], ["compute_90a"])}
    assert (runs[9, 0], runs[10, 0]) == ("jit", "no")


def test_the_stored_form_is_read_back_as_it_was(checkout: Project) -> None:
    path = checkout.audits / "tf2.0.json"
    audit = stored.load(path)
    assert stored.to_json(audit.model_dump(mode="json", by_alias=True)) + "\n" == path.read_text("utf-8")


@pytest.mark.parametrize(
    ("opcode", "ends"),
    [(0x94D, True), (0x95B, True), (0x949, True), (0x94C, True), (0x958, True), (0x959, True), (0x945, False)],
    ids=["EXIT", "KILL", "BRX", "JMX", "BRXU", "JMXU", "BSSY"],
)
def test_a_block_of_machine_code_ends_at_what_never_continues(opcode: int, ends: bool) -> None:
    unguarded = 7 << 12
    code = SassCode(memoryview(struct.pack("<4Q", opcode | unguarded, 0, 0x94D | unguarded, 0)), 80)
    assert code.starts == ([0, 1] if ends else [0])
    assert code.predecessors == ([[], []] if ends else [[]])
