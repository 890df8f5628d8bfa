"""Patterns of calls in programs, by documented names and by arguments, for sources and solutions of the matrix.

Docstrings and descriptions of the models are part of matrix/schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import Field, model_validator

from tfdet.matrix.field_types import StrictModel

_NAME: Final = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*(\[\])?)+"
DottedName = Annotated[str, Field(pattern=rf"^{_NAME}$")]
Prefix = Annotated[str, Field(pattern=r"^([A-Za-z_]\w*\.)+$")]
Value = bool | int | float | str


class ArgumentCondition(StrictModel):
    """Of a call, what it has to be."""

    argument: Annotated[str, Field(pattern=r"^\w+$")] = Field(description="its keyword")
    at: int | None = Field(
        default=None, ge=0, description="its place among those without keywords; of a method the object is the first"
    )
    values: list[Value] = Field(
        default=[],
        description="one of these: literals, or names of constants as documentation has them; a call ends with ()",
    )
    other_than: list[Value] = Field(default=[], description="anything but these")
    default: bool = Field(default=False, description="it is what the condition wants where the call does not give it")

    @model_validator(mode="after")
    def _check_alternatives(self) -> ArgumentCondition:
        if (self.values and self.other_than) or not (self.values or self.other_than or self.default):
            raise ValueError("a condition has values, or other_than, or wants (default) that it is not given")
        return self


class CallPattern(StrictModel):
    """A call of that name, or of one of those, where its arguments are such."""

    name: DottedName | Annotated[list[DottedName], Field(min_length=1)]
    when: list[ArgumentCondition] = Field(default=[])
    may: str = Field(default="", description="what the call itself does not tell: with it, it is one")


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
    """An argument that names, by a text, what else could be passed: compile(loss="mse")."""

    method: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")] = Field(description="the last part of the call's name")
    argument: Annotated[str, Field(pattern=r"^\w+$")] = Field(description="its keyword")
    at: int | None = Field(default=None, ge=0, description="its place, as in a condition")
    under: Prefix = Field(description="under which documentation has that name")


class ApiNames(StrictModel):
    """How programs come by what documentation calls otherwise."""

    imports: dict[str, str] = Field(min_length=1, description="what they import: what documentation calls it")
    exact_aliases: dict[Prefix, Prefix] = Field(default={}, description="another beginning of the same names")
    similar_aliases: list[Prefix] = Field(
        default=[], description="under each of these an op is found: its own name goes first"
    )
    methods: list[Prefix] = Field(default=[], description="under which documentation has the methods of its objects")
    in_place: str = Field(default="", description="what is added to the name of an op that works in place")
    classes: list[Prefix] = Field(
        default=[], description="whose classes are functions of `similar_aliases`, written otherwise"
    )
    aliases: dict[DottedName, DottedName] = Field(default={}, description="names for which no rule holds")
    texts: list[NameAsText] = Field(default=[], description="arguments that name an op by a text")
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
