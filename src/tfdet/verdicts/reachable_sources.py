"""Which sources a program's calls reach: by their names, and by what they are given."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tfdet.matrix.call_patterns import ApiNames, ArgumentCondition, CallPattern, NameAsText
from tfdet.matrix.models import Source
from tfdet.verdicts.programs import Program
from tfdet.verdicts.static_analysis import UNKNOWN, ArgumentValue, Call


@dataclass(frozen=True)
class SourceMatch:
    """A call, as documentation has it, that reaches a source.

    may: what the call does not tell, and the source wants.  method: of an object that may be any.
    """

    call: Call
    source: str
    may: str = ""
    method: bool = False


class SourceIndex:
    """The sources of one framework by the names that programs call."""

    def __init__(self, naming: ApiNames, sources: Mapping[str, Source]) -> None:
        self._naming = naming
        self._own: dict[str, list[tuple[str, CallPattern]]] = {}
        for key, source in sources.items():
            for name, form in source.call_patterns:
                self._own.setdefault(naming.to_documented(name), []).append((key, form))
        self._functions = {
            _normalized_name(name): name
            for area in naming.similar_aliases
            for name in self._own
            if _is_in_namespace(name, area)
        }

    def sources_named(self, name: str) -> list[tuple[str, CallPattern]]:
        """name: as documentation has it."""
        return next((self._own[one] for one in self._spellings(name) if one in self._own), [])

    def _spellings(self, name: str) -> Iterator[str]:
        rules = self._naming
        name = rules.aliases.get(name, name)
        yield name
        plain = name.removesuffix(rules.in_place) if rules.in_place else name
        area = next(
            (one for one in sorted(rules.similar_aliases, key=len, reverse=True) if _is_in_namespace(plain, one)), ""
        )
        yield from (f"{one}{plain.removeprefix(area)}" for one in rules.similar_aliases if area)
        if any(_is_in_namespace(name, one) for one in rules.classes):
            yield from (
                self._functions[one] for one in _base_class_names(_normalized_name(name)) if one in self._functions
            )

    def match_program(self, program: Program) -> Iterator[SourceMatch]:
        for call in program.calls_and_settings:
            if not call.sets and self._naming.owns_name(call.name):
                yield from self._reaches(call, self._naming.to_documented(call.name))
        if any(self._naming.owns_name(name) for name in program.imports):
            for call in program.methods:
                yield from self._by_method(call)
                yield from self._by_text(call)

    def _by_text(self, call: Call) -> Iterator[SourceMatch]:
        """What an argument of the call names: model.compile(loss="categorical_crossentropy")."""
        for one in self._naming.texts:
            told = _argument_passed(call, one) if call.name.rpartition(".")[2] == one.method else None
            if told is not None and isinstance(told.value, str):
                yield from self._reaches(replace(call, positional=(), keywords={}), one.under + told.value)

    def _by_method(self, call: Call) -> Iterator[SourceMatch]:
        """Nobody knows the object: of what comes from another library it is no op."""
        if UNKNOWN not in call.roots and not any(self._naming.owns_name(root) for root in call.roots):
            return
        name = call.name.removeprefix(f"{UNKNOWN}.")
        for one in self._naming.methods:
            for reach in self._reaches(call, one + name):
                # x.at[i].add is nobody else's.
                whose = "" if "[]" in name else f"is its object a {one[:-1]}?"
                yield replace(reach, may=reach.may or whose, method=True)

    def _reaches(self, call: Call, name: str) -> Iterator[SourceMatch]:
        if call.fate in ("written", "unread"):
            return
        for key, form in self.sources_named(name):
            asked = [self._holds(call, argument) for argument in form.when]
            if False not in asked:
                open_to = [one.argument for one, said in zip(form.when, asked, strict=True) if said is None]
                may = form.may or (f"its argument {', '.join(open_to)}" if open_to else "")
                may = may or ("is it read before it is written?" if call.fate == "unknown" else "")
                yield SourceMatch(replace(call, name=name), key, may)

    def _holds(self, call: Call, argument: ArgumentCondition) -> bool | None:
        return argument_matches(call, argument, self._naming)


def argument_matches(call: Call, argument: ArgumentCondition, naming: ApiNames | None = None) -> bool | None:
    """None: the program does not tell."""
    told = _argument_passed(call, argument)
    if call.has_star_args and argument.argument not in call.keywords:
        return None
    if told is None or told == ArgumentValue():
        return argument.default
    if not (argument.values or argument.other_than):
        return False
    value = _literal_value(told, naming)
    if value is None:
        return None
    return value in argument.values if argument.values else value not in argument.other_than


def _argument_passed(call: Call, argument: ArgumentCondition | NameAsText) -> ArgumentValue | None:
    if argument.argument in call.keywords or argument.at is None:
        return call.keywords.get(argument.argument)
    at = argument.at - call.is_method
    return call.positional[at] if 0 <= at < len(call.positional) else None


def _literal_value(told: ArgumentValue, naming: ApiNames | None) -> bool | int | float | str | None:
    """None where it cannot be told: a name that is no constant of the framework."""
    if not told.name or told.name == "[]":
        return (told.name or told.value) if told.known else None
    return naming.to_documented(told.name) if naming and naming.owns_name(told.name.removesuffix("()")) else None


def calls_of(naming: ApiNames, program: Program) -> list[str]:
    """The names of a framework that a program calls, as documentation has them."""
    named = (
        naming.to_documented(call.name)
        for call in program.calls_and_settings
        if not call.sets and not call.is_guess and naming.owns_name(call.name)
    )
    return list(dict.fromkeys(named))


def _is_in_namespace(name: str, area: str) -> bool:
    return name.startswith(area) and "." not in name[len(area) :]


def _normalized_name(name: str) -> str:
    """Of MaxPool2d and max_pool2d the same."""
    return name.rpartition(".")[2].replace("_", "").lower()


def _base_class_names(name: str) -> Iterator[str]:
    """Of a class for one number of dimensions, or for a loss."""
    yield name
    plain = re.sub(r"[123]d$", "", name)
    yield plain
    yield plain.removesuffix("loss")
