"""A random number generator that is created without a seed.

Why: it gets its seed from the operating system, another one in each run, whatever seeds the global generators have.
Example: `rng = numpy.random.default_rng()`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tfdet.verdicts.entropy.rule import Rule, UnitText
from tfdet.verdicts.static_analysis import Call

_NAMES = ("numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.SeedSequence", "random.Random")


def find(text: UnitText) -> Iterator[Call]:
    for call in text.calls:
        name = text.name_of(call)
        if name in _NAMES and _has_no_seed(call):
            yield text.place(call, name)


def _has_no_seed(call: ast.Call) -> bool:
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    return all(isinstance(argument, ast.Constant) and argument.value is None for argument in arguments)


RULE = Rule("unseeded-generator", "a generator without a seed", "give it a seed: default_rng(seed)", find)
