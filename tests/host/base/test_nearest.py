"""The "did you mean" suggestions: the intended name is first, and alone if only look-alike characters differ."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfdet.base.errors import unknown_name_error
from tfdet.base.nearest import MAX_RESULTS, distance, nearest
from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("tf2.O", ["tf2.0"]),
        ("tf2.o", ["tf2.0"]),
        ("tfl.15", ["tf1.15"]),
        ("TF1.I5", ["tf1.15"]),
        ("tf2_0", ["tf2.0"]),
        ("torch2.l3", ["torch2.13"]),
        ("bias_add_backprop", ["bias-add-backprop"]),
        ("bias-add-bakcprop", ["bias-add-backprop"]),
        ("tensorflow2.0", ["tf2.0", "tf2.0.4"]),
        ("TensorFlow 1.15", ["tf1.15", "tf1.15.5"]),
        ("tenserflow", []),
        ("", []),
    ],
)
def test_the_nearest_name_is_suggested(checkout: Project, typed: str, expected: list[str]) -> None:
    matrix = load_matrix(checkout.matrix)
    names = nearest(typed, [*matrix.environments, *matrix.sources])
    assert names[:1] == expected[:1] and (typed[:1] != "t" or names == expected)


def test_the_nearest_versions_come_first(checkout: Project) -> None:
    environments = load_matrix(checkout.matrix).environments
    assert nearest("tf2.22", environments)[0] == "tf2.2"
    assert nearest("tf2", environments)[:2] == ["tf2.0", "tf2.1"]
    assert nearest("nvidai", ["cpu", "nvidia", "vgpu"]) == ["nvidia"]
    assert nearest("h100", ["cpu", "nvidia-a100-sxm", "nvidia-h100-80gb"]) == ["nvidia-h100-80gb"]


def test_without_a_near_name_the_known_ones_are_listed() -> None:
    assert unknown_name_error("dish", "xyz", ["soup", "salad", "soup"]).advice == "Known: salad, soup"


@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(one=st.text("ab0Oo.-", max_size=7), other=st.text("ab0Oo.-", max_size=7))
def test_distance_is_a_distance(one: str, other: str) -> None:
    assert distance(one, other) == distance(other, one) <= max(len(one), len(other))
    assert (distance(one, other) == 0) == (one == other)
    names = nearest(one, [one, other])
    assert len(names) <= MAX_RESULTS and (not one or one in names)
