"""A change of the matrix changes only the related parts of generated files."""

from __future__ import annotations

import difflib

from tfdet.base.paths import Project
from tfdet.publish import advice
from tfdet.verdicts import remaining_sources
from tfdet.verdicts.status_loading import load_status

EARLY = """
title = "an op that nobody has heard of"
group = "gpu-confirmed"
order = 1
api = "tf.unheard"
direction = "forward"
devices = ["gpu"]
raw_ops = ["Unheard"]
workaround = "tf.heard"
cite = ["made up for this test"]

[[claims]]
stock = "==1.15"
device = "gpu"
solutions = ["NS1"]
outcome = "no-solution"
cite = ["made up for this test"]
"""


def test_a_new_source_is_one_new_line_of_the_advice(copy: Project) -> None:
    before = advice.to_json(load_status(copy)).splitlines()
    (copy.matrix / "sources" / "tensorflow" / "an-early-one.toml").write_text(EARLY, "utf-8")
    after = advice.to_json(load_status(copy)).splitlines()
    difference = [line for line in difflib.ndiff(before, after) if line[0] in "-+"]
    assert [line[:20] for line in difference] == ['+ "an-early-one": {"']


def test_a_new_list_of_uncovered_ops_changes_no_other_text(copy: Project) -> None:
    """A claim about 1.15 adds a list for it; the others keep their content."""
    before = remaining_sources.to_content(load_status(copy))["places"]  # {build: the first build with an equal list}
    (copy.matrix / "sources" / "tensorflow" / "an-early-one.toml").write_text(EARLY, "utf-8")
    after = remaining_sources.to_content(load_status(copy))["places"]
    assert {name for name in before if before[name] != after[name]} == {"stock 1.15"}
