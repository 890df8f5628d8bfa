"""What the committed audits read from the builds agrees with what an independent program read."""

from __future__ import annotations

import re
from pathlib import Path

import elf_builders as make
import pytest

from tfdet.audit.strings import search
from tfdet.verdicts.audit_findings import AuditIndex

# {environment variable: TensorFlow versions whose build holds it}: read on 2026-11-20 by another program than this one.
VERSIONS_WITH_VARIABLE = {
    "TF_CUDNN_DETERMINISTIC": "1.14 1.15 2.0 2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8 2.9 2.10 2.12 2.15 2.17 2.21",
    "TF_DETERMINISTIC_OPS": "2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8 2.9 2.10 2.12 2.15 2.17 2.21",
    "TF_CUDNN_USE_AUTOTUNE": "1.14 1.15 2.0 2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8 2.9 2.10 2.12 2.15 2.17 2.21",
    "TF_USE_CUDNN_AUTOTUNE": "",
    "TF_CUDNN_USE_FRONTEND": "2.5 2.6 2.7 2.8 2.9 2.10 2.12 2.15 2.17",
    "TF_USE_CUDNN": "1.14 1.15 2.0 2.1 2.2 2.3",
    "TF_DISABLE_SEGMENT_REDUCTION_OP_DETERMINISM_EXCEPTIONS": "2.5 2.6 2.7 2.8 2.9 2.10 2.12 2.15 2.17 2.21",
    "TF_DISABLE_SPARSE_SOFTMAX_XENT_WITH_LOGITS_OP_DETERMINISM_EXCEPTIONS": "2.6",
    "TF_DISABLE_DEPTHWISE_CONV_DETERMINISM_EXCEPTIONS": "2.9",
    "TF_DISABLE_SCATTER_OP_DETERMINISM": "2.12 2.15 2.17 2.21",
    "TF_USE_DETERMINISTIC_SEGMENT_REDUCTIONS": "2.7 2.8 2.9 2.10 2.12 2.15 2.17 2.21",
    "TF_DETERMINISTIC_ALLOCATOR": "2.7 2.8 2.9 2.10 2.12 2.15 2.17 2.21",
}
# {part of an error message: versions}
VERSIONS_WITH_MESSAGE = {
    "GPU implementation of sorted segment": "2.5 2.6 2.7 2.8 2.9 2.10 2.12 2.15 2.17 2.21",
    "CropAndResizeBackpropImage": "2.6 2.7 2.8 2.9 2.10 2.12 2.15 2.17 2.21",
    "SparseTensorDenseMatmulOp": "2.6 2.7 2.8 2.9 2.10 2.12 2.15 2.17 2.21",
    "AdjustContrast ": "2.7 2.8 2.9 2.10 2.12 2.15 2.17 2.21",
    "supported for Svd.": "2.7 2.8 2.9 2.10",
    "SVD of matrices with 1 column": "2.12 2.15 2.17 2.21",
    "FakeQuantWithMinMaxVarsGradient": "2.8 2.9 2.10 2.12 2.15 2.17 2.21",
    "Scatter ops with ref inputs": "2.8 2.9 2.10 2.12 2.15 2.17 2.21",
    "Timestamp": "2.7 2.8 2.9 2.10 2.12 2.15 2.17 2.21",
    "MaxPool gradient ops do not yet have": "2.8 2.9 2.10 2.12 2.15 2.17 2.21",
    "No algorithm worked!": "1.14 1.15 2.0 2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8 2.9 2.10 2.12 2.15 2.17 2.21",
}
COMPARED_VERSIONS = VERSIONS_WITH_VARIABLE["TF_CUDNN_USE_AUTOTUNE"].split()
# {environment: (architectures of machine code, of PTX)}, read by another program, too.
ARCHITECTURES = {
    "tf1.14": ("35 37 52 60 61 70", "35 37 52 60 61 70"),
    "tf2.1": ("35 37 52 60 61 70", "35 37 52 60 61 70"),
    "tf2.4": ("35 50 60 70 75 80", "80"),
    "tf2.12": ("35 50 60 70 75 80", "80"),
    "tf2.15": ("50 60 70 75 80", "80"),
    "tf2.21": ("60 70 80 89 90", "90"),
}


@pytest.mark.parametrize("name", VERSIONS_WITH_VARIABLE)
def test_variables_are_read_where_another_program_found_them(audits: dict[str, AuditIndex], name: str) -> None:
    versions = [v for v in COMPARED_VERSIONS if name in audits[f"tf{v}"].stored.environment_variables]
    assert versions == VERSIONS_WITH_VARIABLE[name].split()


@pytest.mark.parametrize("text", VERSIONS_WITH_MESSAGE)
def test_messages_are_there_where_another_program_found_them(audits: dict[str, AuditIndex], text: str) -> None:
    versions = [v for v in COMPARED_VERSIONS if any(text in message for message in audits[f"tf{v}"].stored.messages)]
    assert versions == VERSIONS_WITH_MESSAGE[text].split()


@pytest.mark.parametrize("key", ARCHITECTURES)
def test_architectures_are_those_that_another_program_found(audits: dict[str, AuditIndex], key: str) -> None:
    architectures = audits[key].stored.architectures
    assert (
        tuple(" ".join(a.split("_")[1] for a in architectures[kind]) for kind in ("sass", "ptx")) == ARCHITECTURES[key]
    )


@pytest.mark.parametrize("key", ["tf1.14", "tf2.0"])
def test_machine_code_and_ptx_of_one_architecture_do_not_contradict(audits: dict[str, AuditIndex], key: str) -> None:
    """Where both readers resolve a kernel of a build, they give the same result."""
    agree = 0
    for row in audits[key].rows:
        verdicts = [f.order_dependent for f in row.kernel.findings if {"sm_70", "compute_70"} & set(f.archs.split())]
        assert not {"yes", "no"} <= set(verdicts), row.signature
        agree += any({"sm_70", "compute_70"} <= set(f.archs.split()) for f in row.kernel.findings) or verdicts == [
            "yes",
            "yes",
        ]
    assert agree > 500


# UpdateOp 4 is a division.
DIVISION_KERNELS = "tensorflow::scatter_op_gpu::Scatter(Scalar)?OpCustomKernel<(float|double), .*UpdateOp.4>"


def test_divisions_are_read_from_machine_code_as_from_ptx(audits: dict[str, AuditIndex]) -> None:
    """Before TensorFlow 2.12 the compiler made each division a call, which machine code left unresolved."""
    for key in [key for key in audits if key.startswith("tf")]:
        rows = [row for row in audits[key].rows if re.match(DIVISION_KERNELS, row.signature)]
        assert len(rows) >= 8, key
        assert {finding.order_dependent for row in rows for finding in row.kernel.findings} == {"yes"}, key


@pytest.mark.parametrize(
    ("code", "read"),
    [
        (b"\x48\xb8XLA_FLAGH\x39\x01", {"XLA_FLAGS"}),  # TensorFlow 2.4.4 has it so; its last letter is elsewhere
        (b"\x49\xbbTF_XLA_F\x48\x39\x01\x75\xdc\x81\x79\x08LAGS", {"TF_XLA_FLAGS"}),
        (b"\x49\xbbTF_XLA_F\x48\x39\x01\x75\xdc\x81\x79\x08LINT", set()),
        (b"\x90\x90XLA_FLAGH\x39\x01", set()),  # no instruction that holds it
    ],
)
def test_a_short_name_inside_instructions_is_found(tmp_path: Path, code: bytes, read: set[str]) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(make.elf(make.X86_64, [(".text", 1, 6, b"\x90" * 80 + code + b"\x90" * 80)]))
    assert search([path], []).variables == read


@pytest.mark.parametrize(
    ("before", "read"),
    [
        (b"\0", True),
        (b"\0\x80\x84.A", True),  # a number of four bytes, and no zero behind it: TensorFlow 2.6 has it so
        (b"\0\x74\xea\x09\xf2", True),
        (b"\0please unset ", False),
        (b"\0MY_", False),
        (b'\0ReadBoolFromEnvVar("', False),
    ],
)
def test_a_variable_is_a_string_of_its_own(tmp_path: Path, before: bytes, read: bool) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(make.elf(make.X86_64, [(".rodata", 1, 2, before + b"TF_DETERMINISTIC_OPS\0")]))
    assert search([path], []).variables == ({"TF_DETERMINISTIC_OPS"} if read else set())
