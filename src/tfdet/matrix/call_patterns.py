"""Patterns of calls in programs, by documented names and by arguments, for sources and solutions of the matrix.

A source is a known source of nondeterminism; a solution is what makes it deterministic.

Docstrings and descriptions of the models are part of matrix/schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import Field, model_validator

from tfdet.matrix.field_types import StrictModel

# An indexed attribute, such as `x.at[].add`, has brackets.
_NAME: Final = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*(\[\])?)+"
DottedName = Annotated[str, Field(pattern=rf"^{_NAME}$")]
Prefix = Annotated[str, Field(pattern=r"^([A-Za-z_]\w*\.)+$")]
Value = bool | int | float | str


class ArgumentCondition(StrictModel):
    """A condition on one argument of a call."""

    argument: Annotated[str, Field(pattern=r"^\w+$")] = Field(description="keyword of the argument")
    at: int | None = Field(
        default=None, ge=0, description="position of the argument, from 0; position 0 of a method is its object"
    )
    values: list[Value] = Field(
        default=[],
        description="accepted values: literals, or documented names of constants; the name of a call ends with ()",
    )
    other_than: list[Value] = Field(default=[], description="values that are not accepted")
    default: bool = Field(default=False, description="whether a call without the argument fulfils the condition")

    @model_validator(mode="after")
    def _check_alternatives(self) -> ArgumentCondition:
        if (self.values and self.other_than) or not (self.values or self.other_than or self.default):
            raise ValueError("a condition has values, or other_than, or wants (default) that it is not given")
        return self


class CallPattern(StrictModel):
    """A pattern of a call: its name, or alternative names, and conditions on its arguments."""

    name: DottedName | Annotated[list[DottedName], Field(min_length=1)]
    when: list[ArgumentCondition] = Field(default=[])
    may: str = Field(
        default="", description="question that the call itself leaves open; the pattern matches if the answer is yes"
    )


Calls = list[DottedName | CallPattern]


def patterns_by_name(calls: Calls) -> Iterator[tuple[str, CallPattern]]:
    """Yield (documented name, pattern) for each name of each pattern."""
    for call in calls:
        pattern = CallPattern(name=call) if isinstance(call, str) else call
        yield from ((name, pattern) for name in ([pattern.name] if isinstance(pattern.name, str) else pattern.name))


def as_dotted_name(text: str) -> str | None:
    """Return the text if it is a single dotted name, else None."""
    return text if re.fullmatch(_NAME, text) else None


class NameAsText(StrictModel):
    """An argument that accepts the name of an object in place of the object: compile(loss="mse")."""

    method: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")] = Field(description="the last part of the call's name")
    argument: Annotated[str, Field(pattern=r"^\w+$")] = Field(description="keyword of the argument")
    at: int | None = Field(default=None, ge=0, description="position of the argument, as in ArgumentCondition")
    under: Prefix = Field(description="prefix of the object's documented name")


class ApiNames(StrictModel):
    """Rules that map the names in programs to the names in the framework's documentation."""

    imports: dict[str, str] = Field(min_length=1, description="{module that programs import: its documented name}")
    exact_aliases: dict[Prefix, Prefix] = Field(default={}, description="{prefix: documented prefix of the same names}")
    similar_aliases: list[Prefix] = Field(
        default=[],
        description="prefixes under which an op may be found by the same last name; an exact name has precedence",
    )
    methods: list[Prefix] = Field(
        default=[], description="prefixes of the documented methods of the framework's objects"
    )
    in_place: str = Field(default="", description="suffix of the name of an op that works in place")
    classes: list[Prefix] = Field(
        default=[], description="prefixes of classes that are functions of `similar_aliases` in another spelling"
    )
    aliases: dict[DottedName, DottedName] = Field(
        default={}, description="{name: documented name} for names that follow no rule"
    )
    texts: list[NameAsText] = Field(default=[], description="arguments that accept the name of an op as text")
    cite: list[str] = Field(min_length=1)

    def to_documented(self, name: str) -> str:
        """Convert a name in a program to the documented name: `tensorflow.keras.Model` to `tf.keras.Model`."""
        for module in sorted(self.imports, key=len, reverse=True):
            if f"{name}.".startswith(f"{module}."):
                name = self.imports[module] + name[len(module) :]
                break
        for alias, documented in self.exact_aliases.items():
            while name.startswith(alias):
                name = documented + name[len(alias) :]
        return name

    def owns_name(self, name: str) -> bool:
        """Return whether a name in a program is one of this framework."""
        return any(f"{name}.".startswith(f"{module}.") for module in self.imports)

    def owns_documented_name(self, name: str) -> bool:
        """Return whether a documented name is one of this framework."""
        return any(name.startswith(f"{module.partition('.')[0]}.") for module in self.imports.values())
