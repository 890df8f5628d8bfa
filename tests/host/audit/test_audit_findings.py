"""What the audits in matrix/audits say of the known sources: reached kernels, candidates, and changed builds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from pydantic import ValidationError

from tfdet.audit.model import Verdict
from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.matrix import ranges
from tfdet.matrix.models import Source, SourceAudit
from tfdet.publish.audit_tables import AuditTables
from tfdet.store import audits as stored
from tfdet.verdicts.audit_findings import AuditIndex
from tfdet.verdicts.build_diff import diff_builds
from tfdet.verdicts.infer import CellKey
from tfdet.verdicts.ops import order_dependent_ops

STOCK_ENVIRONMENTS = {"tf1.13.1", "tf1.14", "tf1.15", "tf2.0", *(f"tf2.{minor}" for minor in range(1, 22))}
OLDER_VERSIONS = ["1.14", "1.15", "2.0", "2.1"]


def test_every_stock_minor_version_has_a_current_audit(audits: dict[str, AuditIndex], checkout: Project) -> None:
    assert set(audits) >= STOCK_ENVIRONMENTS
    for key, audited in audits.items():
        assert not audited.stored.stale, f"tfdet audit {key} --write"
        lock = checkout.lock(key, "gpu").read_text("utf-8")
        assert audited.stored.wheel is not None
        assert f"sha256:{audited.stored.wheel.sha256}" in lock
        assert audited.stored.faults == []


def test_the_files_of_the_original_list(tables: AuditTables) -> None:
    """A list of 2019 names these 15 TensorFlow files, which call atomicAdd; `result` is what the audits found.

    partial: the order-dependent kernels are those of other ops.  false alarm: no atomic depends on order.
    """
    words = {file.name: file.result for file in tables.files()}
    assert Counter(words.values()) == {
        "confirmed": 11, "shipped, not reached": 1, "partial": 1, "false alarm": 1, "not shipped": 1}  # fmt: skip
    assert words["svd_op_gpu.cu.cc"] == "shipped, not reached"
    assert words["histogram_op_gpu.cu.cc"] == "partial"
    assert words["stateful_random_ops_gpu.cu.cc"] == "false alarm"
    assert words["cuda_kernel_helper_test.cu.cc"] == "not shipped"


def test_candidates_are_found_in_every_build_and_claimed_by_no_message(
    tables: AuditTables, audits: dict[str, AuditIndex], sources: Mapping[str, Source]
) -> None:
    title, kernels, _, _ = tables.candidates()[0]
    assert title.startswith("`BlockLSTMGrad`")
    assert kernels == "shipped, reach not established: TF 1.13; TF 1.14 to 2.21"
    assert not any("LSTM" in text for audited in audits.values() for text in audited.stored.messages)


def test_the_resampler_is_shipped_until_contrib_was_removed(tables: AuditTables) -> None:
    (file,) = (file for file in tables.files() if file.name == "resampler_ops_gpu.cu.cc")
    assert file.builds == "TF 1.14 to 1.15; shipped, reach not established: TF 1.13; not shipped: TF 2.0 to 2.21"


# Moves rows between GPUs as they are: its atomics are those of NCCL's barriers and counters (XLA's
# xla/stream_executor/gpu/ragged_all_to_all_device_kernel_lib.cu.h).
COPIES_ROWS = "stream_executor::gpu::RaggedAllToAllDeviceKernelImpl"


def test_every_order_dependent_kernel_has_a_source(
    audits: dict[str, AuditIndex], sources: Mapping[str, Source]
) -> None:
    for key, audited in audits.items():
        rows = audited.kernels_without_source(sources.values())
        if key.startswith("torch"):  # its own kernels that add: see matrix/ops/torch/kernels.toml
            rows = [row for row in rows if row.kernel.verdict == "yes" and row.signature.startswith("at::")]
            rows = [row for row in rows if "::gather" not in row.signature]
        if key.startswith("jax"):
            rows = [row for row in rows if COPIES_ROWS not in row.signature]
        assert not rows, f"{key}: {rows[0].signature}"


# Sources whose atomics are shipped and do not speak for their op, and in which builds: checked by hand.
UNREACHED = {
    "bincount": [*OLDER_VERSIONS, "2.2"],
    "svd-one-column": [*OLDER_VERSIONS, "2.6", "2.21"],
    "tile-grad": [*OLDER_VERSIONS, "2.6", "2.21"],
    "batch-norm-global-grad": [*OLDER_VERSIONS, "2.6", "2.21"],
    "debug-numeric-summary": ["2.2", "2.21"],
    "scatter-nd-update": [*OLDER_VERSIONS, "2.6", "2.21"],
}


@pytest.mark.parametrize("source", UNREACHED)
def test_a_source_whose_op_reaches_no_atomic_has_no_audited_cell(tables: AuditTables, source: str) -> None:
    for version in UNREACHED[source]:
        cell = tables.status.cell(CellKey(f"tf{version}", "gpu", source, "none"))
        assert cell.finding is not None and cell.finding.reach.how == "not reached", version
        assert not cell.audited and not cell.finding.shows_order_dependence


def test_an_op_without_a_gpu_kernel_is_reported(tables: AuditTables) -> None:
    for version in [*OLDER_VERSIONS, "2.4"]:
        finding = tables.status.finding(f"tf{version}", "segment-prod")
        assert finding is not None and finding.reach.how == "no GPU kernel", version
    finding = tables.status.finding("tf2.5", "segment-prod")
    assert finding is not None and finding.shows_order_dependence


def test_bincount_with_weights_is_reached_from_2_3_on(tables: AuditTables) -> None:
    assert [
        v
        for v in ("2.1", "2.2", "2.3", "2.21")
        if (f := tables.status.finding(f"tf{v}", "bincount")) and f.shows_order_dependence
    ] == [
        "2.3",
        "2.21",
    ]


def test_nothing_is_audited_without_a_checked_note_and_a_registration(
    tables: AuditTables, sources: Mapping[str, Source]
) -> None:
    """Check this rule in every audited cell that has no solution; a note is a manual finding that the op is reached."""
    matches = 0
    for cell in tables.status.cells:
        if cell.audited and cell.claimed_outcome == "no-solution":
            audit, stored_audit = sources[cell.key.source].audit, tables.status.audits[cell.key.environment].stored
            assert audit is not None and stored_audit.registrations is not None, cell.key
            notes = [n for n in audit.reachable_notes if ranges.contains(n.stock, stored_audit.minor_version)]
            assert len(notes) == 1 and any(
                "GPU" in " ".join(stored_audit.registrations.get(op, {})) for op in notes[0].ops
            )
            matches += 1
    assert matches > 400
    finding = tables.status.finding("tf1.13.1", "crop-and-resize-backprop")
    assert finding is not None and finding.has_unknown_reach and "reach not established" in finding.text


@pytest.mark.parametrize(
    ("change", "how"),
    [
        ({}, "reached"),
        ({"reachable_notes": []}, "not established"),
        ({"registrations": None}, "not established"),
        ({"registrations": {}}, "no GPU kernel"),
        ({"registrations": {"Op": {"CPU": "float32"}}}, "no GPU kernel"),
        ({"registrations": {"Op": {"CPU GPU": "int32"}}}, "no GPU kernel"),
        ({"registrations": {"Op": {"GPU": ""}}}, "reached"),
        ({"version": "2.3"}, "not established"),
        ({"unreachable_notes": [{"stock": ">=2.4", "note": "n", "cite": ["c"]}], "reachable_notes": []}, "not reached"),
    ],
)
def test_reach_follows_from_notes_and_registrations(change: dict[str, object], how: str) -> None:
    notes = [{"stock": ">=2.4", "ops": {"Op": ["float32"]}, "note": "n", "cite": ["c"]}]
    content = {"kernels": ["K<"], "reachable_notes": notes} | {
        k: v for k, v in change.items() if k in ("reachable_notes", "unreachable_notes")
    }
    wheel = stored.StoredWheel(file=f"tensorflow-{change.get('version', '2.4')}.0-cp38-cp38.whl", sha256="0")
    build = stored.StoredAudit.model_construct(
        wheel=wheel, registrations=change.get("registrations", {"Op": {"CPU GPU": "float32"}})
    )
    assert AuditIndex(build, (), {}, frozenset()).reach(SourceAudit.model_validate(content)).how == how


def test_two_notes_on_one_version_are_refused() -> None:
    note = {"stock": ">=2.4", "note": "n", "cite": ["c"]}
    with pytest.raises(ValidationError, match=r"two entries cover 2\.4"):
        SourceAudit.model_validate({"kernels": ["K<"], "unreachable_notes": [note, note | {"stock": "<=2.4"}]})


@pytest.mark.parametrize(
    ("machine", "ptx", "message"),
    [
        ("unresolved", "no", "no"),
        ("unresolved", "unresolved", "unresolved"),
        ("unresolved", None, "unresolved"),
        ("no", "unresolved", "unresolved"),
        ("unresolved", "yes", "yes"),
        ("yes", "no", "yes"),
    ],
)
def test_ptx_decides_only_where_machine_code_is_unresolved(machine: Verdict, ptx: Verdict | None, message: str) -> None:
    read = [("sm_70", machine), ("compute_70", ptx)]
    findings = [stored.StoredFinding(archs=a, order_dependent=v, reason="r", atomics={"cas": 1}) for a, v in read if v]
    assert stored.StoredKernel(name="k", findings=findings).verdict == message


def test_order_dependent_ops_name_their_sources(checkout: Project, sources: Mapping[str, Source]) -> None:
    ops = order_dependent_ops(checkout.audits, "tf2.0")
    assert ops == order_dependent_ops(checkout.audits, "tf2.0", sources)
    assert ops["CropAndResizeGradImage"] == "crop-and-resize-backprop"
    assert ops["BlockLSTMGrad"] == "block-lstm-grad"
    assert ops["UnsortedSegmentSum"] == "unsorted-segment-sum"
    assert not {"Svd", "TileGrad", "Bincount"} & set(ops)  # shipped, but not reached
    assert not {"GatherV2", "StatefulUniform", "Sum", "AvgPool", "HistogramFixedWidth", "MaxPoolGrad"} & set(ops)
    assert "ResamplerGrad" not in ops  # of contrib, which 2.0 has not
    assert "DenseBincount" not in ops  # came later
    with pytest.raises(DataError):
        order_dependent_ops(checkout.audits, "tf9", sources)


def test_changes_from_2_4_to_2_8(audits: dict[str, AuditIndex], sources: Mapping[str, Source]) -> None:
    changes = diff_builds(audits["tf2.4"], audits["tf2.8"], sources)
    assert "tensorflow::SegmentReduceVectorKernel" in changes.deterministic_added
    assert "TF_USE_DETERMINISTIC_SEGMENT_REDUCTIONS" in changes.variables[0]
    assert changes.variables[1] == []
    assert any("CropAndResize" in text for text in changes.messages[0])
    back = diff_builds(audits["tf2.8"], audits["tf2.4"], sources)
    assert (back.added, back.removed, back.deterministic_added) == (changes.removed, changes.added, {})


def test_a_deterministic_kernel_came_beside_the_old_one(
    audits: dict[str, AuditIndex], sources: Mapping[str, Source]
) -> None:
    changes = diff_builds(audits["tf2.3"], audits["tf2.4"], sources)
    name = "tensorflow::(anonymous namespace)::ResizeBilinearDeterministicGradKernel"
    assert changes.deterministic_added[name] == ["resize-bilinear-backprop"]
    audit = sources["resize-bilinear-backprop"].audit
    assert audit is not None
    finding = audits["tf2.4"].finding(audit)
    assert finding is not None and finding.kind == "order-dependent"  # the old one stayed


def test_gpu_registrations_of_builds(audits: dict[str, AuditIndex]) -> None:
    known = {key: a.stored.registrations for key, a in audits.items() if a.stored.registrations is not None}
    assert {"tf1.14", "tf2.0", "tf2.21"} <= set(known)
    assert known["tf2.21"] is not None and known["tf1.14"] is not None
    assert "float32" in known["tf2.21"]["BlockLSTMGradV2"]["CPU GPU"]
    assert known["tf1.14"]["ResamplerGrad"]["GPU"] == "float32"  # of contrib, which loads late
    assert "BlockLSTMGradV2" not in known["tf1.14"]
