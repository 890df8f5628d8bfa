"""A framework's lists of its ops compared with records: disagreements, recipes, and scripts for maintainers."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tfdet.base.paths import Project
from tfdet.engines.venv import uv_environ_from_pip
from tfdet.matrix.devices import CPU
from tfdet.matrix.ops import DocumentedEntry, Op, load_ops
from tfdet.matrix.source_readings import Readings, find_faults, find_reading, locate_lines
from tfdet.publish.op_comparison import MeasurementColumn, OpRow, compare_ops
from tfdet.publish.recipe import recipe_text, remaining_rows
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.status import Status

# UDA and ONETHREAD are solutions: torch.use_deterministic_algorithms(True), and one thread.
KEY = "torch2.13"
H100 = "nvidia-h100"


def make_op_row(
    documented: list[DocumentedEntry],
    none: Verdict,
    uda: Verdict,
    tolerance: float = 0.0,
    on_gpu: tuple[Verdict, Verdict] | None = None,
) -> OpRow:
    """Return the row of an op with these verdicts: without a solution, under UDA, and both on an H100.

    tolerance: the difference of two runs that PyTorch's own gradient tests allow.
    """
    op = Op(
        key="an-op", name="an_op", variant="", samples=1, dtype="float32", backward=True, tolerance=tolerance,
        reached=["an_op"], tags=[],
    )  # fmt: skip
    verdicts = {MeasurementColumn(CPU, "none"): none, MeasurementColumn(CPU, "UDA"): uda}
    if on_gpu:
        verdicts |= {MeasurementColumn(H100, "none"): on_gpu[0], MeasurementColumn(H100, "UDA"): on_gpu[1]}
    return OpRow(op, "torch-an-op", documented, [], verdicts)


# Entries of the documentation: CUDA says that the gradient of the op raises on GPUs.
CUDA = DocumentedEntry(api="torch.an_op", says="raises", devices=["gpu"], backward=True, modes=[])
DETERMINISTIC = CUDA.model_copy(update={"says": "deterministic"})
EQUAL, DIFFERS, RAISES = Verdict.NOT_SHOWN, Verdict.NONDETERMINISTIC, Verdict.RAISES


@pytest.mark.parametrize(
    ("op_row", "words"),
    [
        (make_op_row([], EQUAL, EQUAL), []),
        (make_op_row([CUDA], EQUAL, EQUAL, 1e-12), []),
        (make_op_row([], EQUAL, EQUAL, 1e-12), ["the documentation does not name it"]),
        (make_op_row([CUDA], EQUAL, EQUAL), ["let no two runs differ"]),
        (make_op_row([CUDA], DIFFERS, EQUAL, 1e-12), ["it differs on a CPU; the documentation names it for none"]),
        (
            make_op_row([CUDA], EQUAL, RAISES, 1e-12),
            ["it raises on a CPU under UDA; the documentation names it for none"],
        ),
        (make_op_row([CUDA], EQUAL, DIFFERS, 1e-12), ["it differs on a CPU under UDA"]),
        (make_op_row([CUDA, DETERMINISTIC], EQUAL, EQUAL, 1e-12), ["another that it raises"]),
        (make_op_row([CUDA, DETERMINISTIC.model_copy(update={"api": "torch.OtherOp"})], EQUAL, EQUAL, 1e-12), []),
        (make_op_row([CUDA, DETERMINISTIC.model_copy(update={"backward": False})], EQUAL, EQUAL, 1e-12), []),
        (make_op_row([CUDA, DETERMINISTIC.model_copy(update={"devices": ["cpu"]})], EQUAL, EQUAL, 1e-12), []),
    ],
)
def test_disagreements_on_a_cpu(op_row: OpRow, words: list[str]) -> None:
    texts = list(op_row.disagreements("UDA"))
    assert len(texts) == len(words)
    assert all(word in text for word, (_, text) in zip(words, texts, strict=True))


FORWARD_DETERMINISTIC = DETERMINISTIC.model_copy(update={"backward": False})


@pytest.mark.parametrize(
    ("documented", "on_gpu", "kind", "words"),
    [
        ([], (DIFFERS, EQUAL), "gpu-differs", "it differs on nvidia-h100; the documentation names it for no GPU"),
        ([CUDA], (DIFFERS, RAISES), None, ""),
        ([FORWARD_DETERMINISTIC], (DIFFERS, Verdict.DETERMINISTIC), None, ""),
        ([FORWARD_DETERMINISTIC], (EQUAL, EQUAL), None, ""),
        (
            [FORWARD_DETERMINISTIC],
            (DIFFERS, DIFFERS),
            "gpu-differs-under",
            "it differs on nvidia-h100 under UDA; the documentation says deterministic",
        ),
        (
            [FORWARD_DETERMINISTIC],
            (EQUAL, RAISES),
            "gpu-raises",
            "it raises on nvidia-h100 under UDA; the documentation says deterministic",
        ),
        (
            [],
            (EQUAL, RAISES),
            "gpu-raises",
            "it raises on nvidia-h100 under UDA; the documentation names it for no GPU",
        ),
        (
            [CUDA],
            (DIFFERS, Verdict.TOO_FEW),
            "gpu-no-error",
            "it does not raise on nvidia-h100 under UDA; the documentation says raises",
        ),
        (
            [FORWARD_DETERMINISTIC],
            (EQUAL, Verdict.FAILED),
            "gpu-fails-under",
            "it ends in another error on nvidia-h100 under UDA, and in none without",
        ),
        ([FORWARD_DETERMINISTIC], (Verdict.FAILED, Verdict.FAILED), None, ""),
        ([CUDA], (Verdict.UNSUPPORTED, Verdict.UNSUPPORTED), None, ""),
    ],
)
def test_disagreements_on_a_gpu(
    documented: list[DocumentedEntry], on_gpu: tuple[Verdict, Verdict], kind: str | None, words: str
) -> None:
    op_row = make_op_row(documented, EQUAL, EQUAL, 1e-12 if documented else 0.0, on_gpu)
    assert list(op_row.disagreements("UDA")) == ([(kind, words)] if kind else [])
    assert op_row.is_notable == bool(documented or on_gpu[0] is DIFFERS or on_gpu[1] in (DIFFERS, RAISES))


def test_every_op_has_its_row(checkout: Project, status: Status) -> None:
    comparisons = {comparison.environment: comparison for comparison in compare_ops(checkout.matrix, status, "torch")}
    assert {"torch2.0", "torch2.11", KEY, "torch2.15"} <= comparisons.keys()
    comparison = comparisons[KEY]
    assert (comparison.environment, len(comparison.rows), sum(number for _, number in comparison.coverage[CPU])) == (
        KEY,
        702,
        702,
    )
    assert comparison.columns == [MeasurementColumn(CPU, solution) for solution in ("none", "UDA", "ONETHREAD")]
    rows = {row.op.key: row for row in comparison.notable_rows}
    assert rows["cumsum"].documentation_text == "raises (CUDA)"
    assert rows["scatter-reduce-prod"].documentation_text == "raises (CUDA, reduce='prod')"
    assert rows["dunder-getitem"].documentation_text == "deterministic (CPU, backward)"


def test_each_environment_has_a_table_of_its_own(checkout: Project) -> None:
    """Without a blank line between them, two tables would be one."""
    for name in ("pytorch.md", "pytorch-conflicts.md"):
        lines = (checkout.root / "docs" / "reference" / name).read_text("utf-8").splitlines()
        headers = [number for number, line in enumerate(lines) if line.startswith("| Op |")]
        assert len(headers) == len(load_ops(checkout.matrix, "torch"))
        assert all(not lines[number - 1] for number in headers)


def test_every_disagreement_names_a_place_in_the_source_code(checkout: Project, status: Status) -> None:
    """Disagreements on GPUs may be listed before their cause is known."""
    for comparison in compare_ops(checkout.matrix, status, "torch"):
        disagreements = [
            disagreement for disagreement in comparison.disagreements if not disagreement.kind.startswith("gpu-")
        ]
        unread = [disagreement.row.op.key for disagreement in disagreements if not disagreement.read]
        assert unread == [], f"{comparison.environment}: extend confirmed.toml, then run scripts/extract-op-lists"
        assert all(disagreement.places and len(disagreement.read) > 40 for disagreement in disagreements)


def test_a_place_is_found_as_the_first_match_below_another(tmp_path: Path) -> None:
    (tmp_path / "torchgen" / "packaged" / "autograd").mkdir(parents=True)
    (tmp_path / "torchgen" / "packaged" / "autograd" / "d.yaml").write_text("- one\n  back\n- two\n  back\n", "utf-8")
    locations = [{"file": "tools/autograd/d.yaml", "words": "back", "below": "- two"},
                 {"file": "tools/autograd/d.yaml", "words": "- two"},
                 {"file": "tools/autograd/d.yaml", "words": "gone"}]  # fmt: skip
    reading = {"ops": ["an-op"], "kind": "tolerance", "finding": "read", "locations": locations}
    readings = Readings.model_validate({"repository": "https://example.org", "confirmed": [reading]})
    located = locate_lines(readings, tmp_path)
    assert located == {"tools/autograd/d.yaml / - two / back": 4, "tools/autograd/d.yaml / - two": 3}
    assert find_reading(readings, located, "an-op", "tolerance") is not None
    assert find_reading(readings, located, "an-op", "gradient") is None
    assert find_reading(readings, {}, "an-op", "tolerance") is None, "another build, in which it does not stand"
    assert list(find_faults(readings, ["other"])) == ["an-op: no such op"]


def test_the_recipe_has_the_lines_of_its_solutions(status: Status) -> None:
    lines = recipe_text(status, KEY).splitlines()
    compile("\n".join(lines), "recipe", "exec")
    assert lines.index("torch.use_deterministic_algorithms(True)") < lines.index(
        "torch.manual_seed(1)  # of all devices"
    )
    assert "import tfdeterminism.pytorch" in lines[1]
    assert not any("tensorflow" in line or "tfdeterminism" in line for line in lines if not line.startswith("#"))
    remaining = {entry["source"] for entry in remaining_rows(status, KEY)}
    assert {"torch-cumsum", "torch-histc", "torch-put"} <= remaining
    assert not {"torch-index-add", "torch-scatter-add"} & remaining


def test_uv_uses_the_index_settings_of_pip() -> None:
    variables = uv_environ_from_pip({"PIP_FIND_LINKS": "/one /two", "PIP_EXTRA_INDEX_URL": "file:///three"})
    assert (variables["UV_FIND_LINKS"], variables["UV_EXTRA_INDEX_URL"]) == ("/one,/two", "file:///three")
    assert uv_environ_from_pip({"PIP_FIND_LINKS": "/one", "UV_FIND_LINKS": "/mine"})["UV_FIND_LINKS"] == "/mine"
    assert uv_environ_from_pip({"HOME": "/home"}) == {"HOME": "/home"}


@pytest.mark.parametrize("name", ["update-locks", "extract-op-lists", "extract-determinism-alerts", "batch-invariance"])
def test_a_maintenance_script_restarts_in_the_virtual_environment(checkout: Project, tmp_path: Path, name: str) -> None:
    """It is started by a Python without packages that is first on PATH, and continues in .venv's by its path."""
    (tmp_path / "python").symlink_to(Path(sys.executable).resolve())
    environ = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}
    command = [tmp_path / "python", "-I", "-S", checkout.root / "scripts" / name, "no-such-environment"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "no-such-environment" in done.stderr


def test_quickstart_of_another_framework_needs_the_option(checkout: Project) -> None:
    done = subprocess.run(
        [checkout.root / "scripts" / "quickstart", "--framework", "jax"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, "usage: scripts/quickstart" in done.stderr) == (2, True)
    text = (checkout.root / "scripts" / "quickstart-torch").read_text("utf-8")
    assert f"run {KEY} cpu" in text


def test_source_code_that_no_wheel_contains_is_linked_at_its_release(checkout: Project, status: Status) -> None:
    (comparison,) = (
        comparison for comparison in compare_ops(checkout.matrix, status, "torch") if comparison.environment == KEY
    )
    (disagreement,) = (
        item for item in comparison.disagreements if item.row.op.key == "nn-functional-adaptive-max-pool3d"
    )
    root = "https://github.com/pytorch/pytorch/blob"
    assert disagreement.places[0][1].startswith(f"{root}/{comparison.ops.commit}/torch/testing/")
    file = "aten/src/ATen/native/cuda/AdaptiveMaxPooling3d.cu"
    assert (f"{file}:273 (v2.6.0)", f"{root}/v2.6.0/{file}#L273") in disagreement.places
    nowhere = comparison.readings.model_copy(update={"release": ""})
    assert "addmm: code of no release" in list(find_faults(nowhere, {row.op.key for row in comparison.rows}))


def test_a_row_counts_the_order_dependent_kernels_of_its_op(checkout: Project, status: Status) -> None:
    by_environment = {
        comparison.environment: {row.op.key: row.binary for row in comparison.rows}
        for comparison in compare_ops(checkout.matrix, status, "torch")
    }
    cells_of_build = by_environment["torch2.14"]
    ops = ("nn-functional-adaptive-max-pool3d", "nn-functional-avg-pool1d", "cumsum", "abs")
    # °: the kernels are attributed to the op by names and sources.
    assert [cells_of_build[op] for op in ops] == ["8°", "0", "not seen", ""]
    assert set(by_environment[KEY].values()) == {""}, "its build for CUDA is not audited"
    attention = [by_environment[key]["nn-functional-scaled-dot-product-attention"] for key in ("torch2.0", "torch2.4")]
    assert attention == ["102°", "404°"]


def test_an_undocumented_op_is_notable_if_its_kernels_are_order_dependent(checkout: Project, status: Status) -> None:
    comparison = next(
        comparison
        for comparison in compare_ops(checkout.matrix, status, "torch")
        if comparison.environment == "torch2.8"
    )
    rows = {row.op.key: row for row in comparison.rows}
    attention = rows["nn-functional-scaled-dot-product-attention"]
    assert not attention.is_documented
    assert attention in comparison.notable_rows
    # The number of order-dependent kernels: ° attributed by names and sources, × out of reach of the op.
    cells_by_binary = {
        binary: replace(attention, binary=binary).is_notable for binary in ("380°", "8", "8×", "(8)", "0", "?", "–", "")
    }
    assert [binary for binary, cell in cells_by_binary.items() if cell] == ["380°", "8"]


def test_kernels_without_an_op_are_reported(whole_copy: Project) -> None:
    path = whole_copy.matrix / "ops" / "torch" / "kernels.toml"
    path.write_text(path.read_text("utf-8").replace('"index-add"', '"index-ad"'), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "tfdet", "show", KEY, "torch-cumsum"],
        env={**os.environ, "TFDET_ROOT": str(whole_copy.root)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "kernels.toml: no op index-ad" in done.stderr
