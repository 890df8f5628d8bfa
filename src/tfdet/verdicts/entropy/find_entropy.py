"""Apply all entropy rules, which find inputs that can differ between runs, to a file or a notebook's cell."""

from __future__ import annotations

from collections.abc import Iterator

from tfdet.verdicts.entropy import (
    completion_order,
    hash_of_text,
    seed_from_run,
    set_order,
    sort_by_address,
    unseeded_generator,
    unsorted_listing,
)
from tfdet.verdicts.entropy.rule import Rule, UnitText
from tfdet.verdicts.static_analysis import Call, NameResolver, SourceUnit

RULES = tuple(
    module.RULE
    for module in (
        seed_from_run, unseeded_generator, set_order, hash_of_text, sort_by_address, unsorted_listing, completion_order,
    )
)  # fmt: skip


def find_entropy(unit: SourceUnit, names: NameResolver) -> Iterator[tuple[Rule, Call]]:
    """Yield (rule, call) of each match, in the order of the rules."""
    text = UnitText(unit, names)
    return ((rule, call) for rule in RULES for call in rule.find(text))
