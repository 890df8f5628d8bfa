"""Kinds of device: what may back which cell, and that a new kind changes no existing cell."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from typing import Any, get_args

import pytest
from records import STACK, proof_of
from signers import Signer, write_attestations
from test_status import run_tfdet

from tfdet.base.errors import ExitCode
from tfdet.base.paths import Project
from tfdet.cli import options
from tfdet.matrix.devices import DeviceRegistry
from tfdet.matrix.field_types import Device
from tfdet.matrix.load import load_matrix
from tfdet.store.cases import current_cases
from tfdet_probe import devices as probes

# Details of a record: the schedules of the reference and of the other runs, and the hash of the virtual GPU's code.
SCHEDULES = {"reference": "serial", "schedules": ["reverse", "random:7"], "sources": "0" * 12}
SM70 = {"kind": "vgpu", "model": "vgpu-sm70", "details": SCHEDULES}
SOURCE = "bias-add-backprop"


@pytest.fixture(scope="module")
def devices(checkout: Project) -> DeviceRegistry:
    return load_matrix(checkout.matrix).devices


def test_the_probe_runs_on_the_kinds_that_the_matrix_knows(devices: DeviceRegistry) -> None:
    known = {key: (kind.cli_name, kind.placement, kind.has_model_name) for key, kind in devices.kinds.items()}
    assert known == {device.kind: (device.cli_name, device.placement, device.launches_kernels) for device in probes.ALL}
    assert set(get_args(options.Device)) == set(probes.CLI_NAMES)


def test_claims_name_every_kind_of_device(devices: DeviceRegistry) -> None:
    assert {kind.claim_device for kind in devices.kinds.values()} == set(get_args(Device))


@pytest.mark.parametrize(
    ("device", "claim_device", "backs"),
    [
        ("cpu", "cpu", "measured"),
        ("gpu", "gpu", "measured"),
        ("nvidia-h200", "gpu", "measured"),
        ("vgpu-sm70", "gpu", "emulated"),
        ("cpu2", None, "measured"),
    ],
)
def test_which_cells_a_device_may_back(
    device: str, claim_device: str | None, backs: str, devices: DeviceRegistry
) -> None:
    assert (devices.claim_device(device), devices.evidence_kind(device)) == (claim_device, backs)


def cases_of(project: Project) -> tuple[str, list[tuple[str, str]]]:
    """Return the hash of a source's case, and the (name, mode) pairs of its cases."""
    by_hash = current_cases(project).by_hash
    return next((code, sorted(cases or ())) for (name, code), cases in by_hash.items() if name == SOURCE)


def records_of(
    project: Project, record_line: Callable[..., bytes], *observations: tuple[str, str], **fields: Any
) -> bytes:
    """Return records of a source that documents claim to be deterministic on GPUs under TDO."""
    code, cases = cases_of(project)
    case, mode = cases[0]
    variables = {"TDO": {"TF_DETERMINISTIC_OPS": "1"}, "none": {}}
    return b"".join(
        record_line(observation, **{
            "environment": "tf2.1", "version": "2.1.0", "device": SM70, "ran_on": ["GPU:0"], "stack": STACK,
            "case": case, "mode": mode, "case_hash": code, "solution": solution,
            "determinism_environment": variables[solution], "relaunches": 2, **fields})
        for observation, solution in observations
    )  # fmt: skip


def cells(project: Project) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return {(environment, device, source, solution): cell} of `tfdet status --json`."""
    listed = json.loads(run_tfdet(project, "status", "--json").stdout)["cells"]
    return {tuple(cell[name] for name in ("environment", "device", "source", "solution")): cell for cell in listed}


def readme_row(project: Project) -> str:
    """Return the README's row of the source; its marks: m measured, e emulated, ✗ contradicted."""
    assert run_tfdet(project, "status", "--write").returncode in (ExitCode.OK, ExitCode.CONTRADICTED)
    lines = (project.root / "README.md").read_text("utf-8").splitlines()
    return next(line for line in lines if line.startswith("| `tf.nn.bias_add` backprop"))


def add_evidence(project: Project, content: bytes, signer: Signer | None = None) -> None:
    """Add these record lines to the project's evidence, signed or not."""
    path = project.root / "records.jsonl"
    path.write_bytes(content)
    if signer:
        write_attestations(project, path, signer)
    done = run_tfdet(project, "evidence", "add", "--yes", path)
    assert done.returncode == 0, done.stderr


def without_emulation(project: Project) -> Project:
    """Remove the evidence of virtual GPUs."""
    for folder in project.evidence.glob("vgpu-*"):
        shutil.rmtree(folder)
    return project


def test_emulated_cells_are_marked_and_change_no_other_cell(copy: Project, record_line: Callable[..., bytes]) -> None:
    project = without_emulation(copy)
    before, advice = cells(project), project.advice_file.read_bytes()
    printed_row = readme_row(project)
    assert "<sup>e</sup>" not in printed_row
    add_evidence(project, records_of(project, record_line, ("differs", "none"), ("equal", "TDO")))
    after = cells(project)
    assert {key: cell for key, cell in after.items() if key in before} == before
    new = {
        key[1:]: (cell["verdict"], cell["backing"], cell["claim"]) for key, cell in after.items() if key not in before
    }
    assert new == {
        ("vgpu-sm70", "bias-add-backprop", "none"): ("nondeterministic", "emulated", None),
        ("vgpu-sm70", "bias-add-backprop", "TDO"): ("deterministic", "emulated", "deterministic"),
    }
    line_of_cell = readme_row(project)
    assert "TDO<sup>e</sup> (TF 2.1)" in line_of_cell and line_of_cell.count("<sup>m</sup>") == printed_row.count(
        "<sup>m</sup>"
    )
    assert project.advice_file.read_bytes() == advice, "emulated records give no advice on GPUs"
    assert run_tfdet(project, "status", "--check").returncode == 0
    line_of_cell = run_tfdet(project, "show", "tf2.1", "bias-add-backprop").stdout
    assert "vgpu-sm70" in line_of_cell and "emulated" in line_of_cell


def test_a_claim_that_the_emulation_contradicts_is_named(copy: Project, record_line: Callable[..., bytes]) -> None:
    project = without_emulation(copy)
    add_evidence(project, records_of(project, record_line, ("differs", "none"), ("differs", "TDO")))
    assert "TDO<sup>✗</sup> (TF 2.1)" in readme_row(project)
    done = run_tfdet(project, "status", "--check")
    assert done.returncode == ExitCode.CONTRADICTED
    assert "claimed deterministic" in done.stderr and "emulated nondeterministic" in done.stderr


def h200_records(
    project: Project, record_line: Callable[..., bytes], *observations: tuple[str, str], **fields: Any
) -> bytes:
    """Return records of a source on an H200."""
    h200 = {"kind": "nvidia", "model": "nvidia-h200"}
    stack = {**STACK, "gpu": "NVIDIA H200", "driver": "550.54", "compute_capability": "9.0"}
    return records_of(project, record_line, *observations, device=h200, stack=stack, machine="abcdef123456", **fields)


@pytest.mark.parametrize(
    ("emulated", "card", "conflicts"),
    [("differs", "equal", False), ("equal", "differs", True)],
    ids=["a card need not take the schedule that differs", "a card differs where no schedule did"],
)
def test_without_a_control_only_a_difference_disagrees(
    copy: Project, record_line: Callable[..., bytes], emulated: str, card: str, conflicts: bool
) -> None:
    project = without_emulation(copy)
    add_evidence(project, records_of(project, record_line, (emulated, "none")))
    add_evidence(project, h200_records(project, record_line, (card, "none")), Signer("lab"))
    done = run_tfdet(project, "status")
    named = "nvidia-h200 measured nondeterministic, vgpu-sm70 emulated not shown to differ"
    assert (named in done.stderr) is conflicts
    assert (done.returncode == ExitCode.CONTRADICTED) is conflicts


@pytest.mark.parametrize("proof", [None, proof_of(proved=True)], ids=["equal", "proved"])
def test_a_gpu_record_of_other_cases_contradicts_no_emulation(
    copy: Project, record_line: Callable[..., bytes], proof: Mapping[str, Any] | None
) -> None:
    project = without_emulation(copy)
    add_evidence(project, records_of(project, record_line, ("equal", "none"), proof=proof))
    case, mode = cases_of(project)[1][-1]
    add_evidence(project, h200_records(project, record_line, ("differs", "none"), case=case, mode=mode), Signer("lab"))
    assert run_tfdet(project, "status").returncode == ExitCode.OK


def test_a_gpu_with_a_differing_control_contradicts_a_differing_emulation(
    copy: Project, record_line: Callable[..., bytes]
) -> None:
    project = without_emulation(copy)
    add_evidence(project, records_of(project, record_line, ("differs", "none"), ("differs", "TDO")))
    add_evidence(project, h200_records(project, record_line, ("differs", "none"), ("equal", "TDO")), Signer("lab"))
    done = run_tfdet(project, "status")
    assert "nvidia-h200 measured deterministic, vgpu-sm70 emulated nondeterministic" in done.stderr


@pytest.mark.parametrize(("card", "conflicts"), [("equal", False), ("differs", True)])
def test_a_gpu_that_disagrees_with_its_emulation_is_reported(
    copy: Project, record_line: Callable[..., bytes], card: str, conflicts: bool
) -> None:
    project = without_emulation(copy)
    add_evidence(project, records_of(project, record_line, ("differs", "none"), ("equal", "TDO")))
    add_evidence(project, h200_records(project, record_line, ("differs", "none"), (card, "TDO")), Signer("lab"))
    done = run_tfdet(project, "status")
    assert (done.returncode == ExitCode.CONTRADICTED) is conflicts
    assert ("nvidia-h200 measured nondeterministic, vgpu-sm70 emulated deterministic" in done.stderr) is conflicts
    if not conflicts:
        assert "TDO<sup>m</sup> (TF 2.1)" in readme_row(project), "a card outweighs its emulation"


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"device": {**SM70, "details": {"clock": 3}}}, "vgpu-sm70 has no clock"),
        ({"device": {"kind": "vgpu", "model": "nvidia-h200"}}, "not the key of a device of kind vgpu"),
        ({"device": {**SM70, "model": "vgpu-sm7"}}, "the virtual GPU has no model vgpu-sm7"),
        ({"ran_on": ["CPU:0"]}, "another kind of device than vgpu-sm70"),
        ({"stack": {**STACK, "gpu": "NVIDIA H200"}}, "the record names a GPU"),
    ],
)
def test_details_that_the_kind_of_device_lacks_are_refused(
    copy: Project, record_line: Callable[..., bytes], changes: dict[str, Any], fault: str
) -> None:
    path = copy.root / "records.jsonl"
    path.write_bytes(record_line(**{"device": SM70, "ran_on": ["GPU:0"], **changes}))
    done = run_tfdet(copy, "evidence", "add", "--yes", path)
    assert (done.returncode, fault in done.stderr) == (ExitCode.USAGE, True), done.stderr


def test_a_kind_that_the_matrix_does_not_know_is_refused(copy: Project, record_line: Callable[..., bytes]) -> None:
    path = copy.root / "records.jsonl"
    path.write_bytes(record_line(device={"kind": "tpu", "model": "tpu-v3"}, ran_on=["GPU:0"]))
    done = run_tfdet(copy, "evidence", "add", "--yes", path)
    assert (done.returncode, "'tpu' is not a kind of device" in done.stderr) == (ExitCode.USAGE, True), done.stderr
    stored = copy.evidence / "tpu-v3" / "tf2.0.jsonl"
    stored.parent.mkdir()
    stored.write_bytes(path.read_bytes())
    assert "'tpu' is not a kind of device" in run_tfdet(copy, "status").stderr
