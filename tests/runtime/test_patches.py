"""Replaced ops in real TensorFlows: equal results, no order-dependent op, every Keras layer, restoration."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import weekly
from inside import run_check_for_json

from tfdet.base.paths import Project
from tfdet.matrix.load import Matrix, load_matrix
from tfdet.matrix.models import Source
from tfdet.verdicts import remaining_sources
from tfdet.verdicts.ops import order_dependent_ops
from tfdeterminism.patches import PATCHES, Patch

OF_KERAS_2 = ("tf1.14", "tf1.15", "tf2.0", "tf2.4", "tf2.6", "tf2.8", "tf2.15")
ENVIRONMENTS = weekly.select_for_today(
    ("tf1.14", "tf2.0", "tf2.21"), all_values=(*OF_KERAS_2, "tf2.21"), days=weekly.DAYS
)
# Ops of served sources that compute each output by itself: the order dependence is in their gradients.
INDEPENDENT_OF_ORDER = {"GatherV2", "ResizeBilinear"}


def patches(key: str) -> list[Patch]:
    """Return the patches of an environment's version."""
    version = tuple(int(part) for part in key[2:].split("."))
    return [patch for patch in PATCHES.values() if patch.applies(version)]


def order_dependent(checkout: Project, key: str) -> list[str]:
    """The op types that no patched graph of this environment may hold.

    They are those whose kernels its audit calls order-dependent, or cannot tell, but not where TensorFlow itself makes
    their source deterministic in this version.  To them come all ops of the sources that the patches serve: an audit
    is blind to races of plain stores.
    """
    matrix = load_matrix(checkout.matrix)
    served = {source for patch in patches(key) for source in patch.sources}
    unsolved = {
        name: source for name, source in matrix.sources.items() if name in served or not is_helped(matrix, key, source)
    }
    audited = order_dependent_ops(checkout.matrix / "audits", key, unsolved)
    return sorted({*audited, *(op for name in served for op in matrix.sources[name].raw_ops)} - INDEPENDENT_OF_ORDER)


def is_helped(matrix: Matrix, key: str, source: Source) -> bool:
    """Whether documents say that the settings of `enable_determinism` in this version suffice for the source."""
    environment = matrix.environment(key)
    solution = remaining_sources.recipe_of(environment).solution
    effects = remaining_sources.expand_includes(matrix, solution) if solution else set()
    return any(
        claim.device == "gpu" and claim.outcome == "deterministic" and claim.covers(environment)
        for claim in source.claims
        if effects & set(claim.solutions)
    )


@pytest.mark.tensorflow
@pytest.mark.parametrize("key", ("tf1.13.1", *ENVIRONMENTS) if weekly.ALL else ENVIRONMENTS)
def test_patched_ops_compute_what_tensorflows_do(checkout: Project, tf_python: Callable[[str], Path], key: str) -> None:
    cases = run_check_for_json(checkout, tf_python(key), "math_checks.py")
    assert {case["case"]: case["faults"] for case in cases if case["faults"]} == {}
    # Every patch of this version was compared.
    assert {case["patch"] for case in cases if case["compared"]} == {patch.key for patch in patches(key)}


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "key",
    weekly.select_for_today(("tf2.0", "tf2.21"), all_values=("tf2.0", "tf2.4", "tf2.21"), days=weekly.DAYS, first=3),
)
def test_loops_functions_jacobians_and_forward_mode(
    checkout: Project, tf_python: Callable[[str], Path], key: str
) -> None:
    [report] = run_check_for_json(checkout, tf_python(key), "calculus_checks.py")
    assert report["faults"] == []
    assert report["compared"] > 40


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "key",
    weekly.select_for_today(("tf1.14", "tf2.0"), all_values=("tf1.14", "tf2.0", "tf2.6"), days=weekly.DAYS, first=4),
)
def test_additions_are_exact(checkout: Project, tf_python: Callable[[str], Path], key: str) -> None:
    """Every order of adversarial addends gives equal bits; sequential additions differ."""
    [report] = run_check_for_json(checkout, tf_python(key), "exact_checks.py")
    assert report["faults"] == []
    assert report["compared"] > 70
    assert [name for name, differed in report["control"].items() if not differed] == ["denormal"]


def test_the_audit_lists_the_order_dependent_ops(checkout: Project) -> None:
    old, new = set(order_dependent(checkout, "tf2.0")), set(order_dependent(checkout, "tf2.21"))
    # Audited, and of no raw_ops: the audit of the binary is what names them.
    assert {"ScatterNdSub", "ResourceScatterMul", "Dilation2DBackpropInput"} <= old
    # Audited too in 2.21, but deterministic there by TensorFlow's own switch.
    assert "UnsortedSegmentSum" in old - new and "CropAndResizeGradImage" in old & new


@pytest.mark.tensorflow
@pytest.mark.parametrize("key", ENVIRONMENTS)
def test_no_order_dependent_op_is_left(checkout: Project, tf_python: Callable[[str], Path], key: str) -> None:
    """Graphs of every replaced op and of Keras layers, forward and backward; without patches each fails."""
    ops = order_dependent(checkout, key)
    [unpatched] = run_check_for_json(checkout, tf_python(key), "patches_checks.py", request(ops, patched=False))
    assert unpatched["structure"] and all(unpatched["structure"].values())
    if key in OF_KERAS_2:  # Keras 3 makes nearest up-sampling and frozen batch normalization of other ops
        assert unpatched["reach"] and all(unpatched["reach"].values())
    [patched] = run_check_for_json(checkout, tf_python(key), "patches_checks.py", request(ops, patched=True))
    assert patched["structure"] == {scenario: [] for scenario in unpatched["structure"]}
    assert patched["reach"] == {layer: [] for layer in unpatched["reach"]}
    # Wrong arguments, names and shapes of results, restore(), references, the race of crop_and_resize on the CPU.
    assert patched["faults"] == []


def request(ops: list[str], *, patched: bool) -> str:
    """Return the JSON argument of patches_checks.py."""
    return json.dumps({"order_dependent": ops, "patched": patched})


def test_each_patch_serves_sources_of_the_matrix(checkout: Project) -> None:
    sources = load_matrix(checkout.matrix).sources
    for patch in PATCHES.values():
        assert set(patch.sources) <= set(sources), patch.key


def test_versions_are_decided_by_the_table() -> None:
    patch = Patch("key", (), (1, 14), (2, 1), lambda session: None, "note", False)
    assert [patch.applies(version) for version in ((1, 13), (1, 14), (2, 0, 4), (2, 1), (2, 21))] == [
        False, True, True, False, False,
    ]  # fmt: skip
    assert not patch.applies((1, 15), is_ngc=True)
