"""Find the sources of nondeterminism that a program's calls reach, by the calls' names and arguments."""

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
    """A call, by its documented name, that reaches a source.

    open_condition: of the source, which the call leaves open; empty if there is none.  is_method_guess: whether the
    call is a method of an object of unknown type.
    """

    call: Call
    source: str
    open_condition: str = ""
    is_method_guess: bool = False


class SourceIndex:
    """The sources of one framework by the names that programs call.

    A documented name is the one that the framework's documentation uses.  naming.similar_aliases: prefixes, such as
    `torch.` and `torch.Tensor.`, under which the same last name means the same op.  classes: prefixes of classes that
    are functions in another spelling.  methods: prefixes of documented methods.  in_place: suffix of in-place ops.
    """

    def __init__(self, naming: ApiNames, sources: Mapping[str, Source]) -> None:
        self._naming = naming
        self._sources_by_name: dict[str, list[tuple[str, CallPattern]]] = {}
        for key, source in sources.items():
            for name, pattern in source.call_patterns:
                self._sources_by_name.setdefault(naming.to_documented(name), []).append((key, pattern))
        self._functions = {  # by normalized name
            _normalized_name(name): name
            for namespace in naming.similar_aliases
            for name in self._sources_by_name
            if _is_in_namespace(name, namespace)
        }

    def sources_named(self, name: str) -> list[tuple[str, CallPattern]]:
        """Return the sources, with their call patterns, of a documented name."""
        return next(
            (
                self._sources_by_name[spelling]
                for spelling in self._spellings(name)
                if spelling in self._sources_by_name
            ),
            [],
        )

    def _spellings(self, name: str) -> Iterator[str]:
        """Yield the names under which a source may list a documented name: itself and its equivalents."""
        rules = self._naming
        name = rules.aliases.get(name, name)
        yield name
        plain = name.removesuffix(rules.in_place) if rules.in_place else name
        namespaces = sorted(rules.similar_aliases, key=len, reverse=True)
        own = next((namespace for namespace in namespaces if _is_in_namespace(plain, namespace)), "")
        yield from (f"{namespace}{plain.removeprefix(own)}" for namespace in rules.similar_aliases if own)
        if any(_is_in_namespace(name, namespace) for namespace in rules.classes):
            base_names = _base_class_names(_normalized_name(name))
            yield from (self._functions[base] for base in base_names if base in self._functions)

    def match_program(self, program: Program) -> Iterator[SourceMatch]:
        for call in program.calls_and_settings:
            if not call.is_assignment and self._naming.owns_name(call.name):
                yield from self._match_name(call, self._naming.to_documented(call.name))
        if any(self._naming.owns_name(name) for name in program.imports):
            for call in program.methods:
                yield from self._match_method(call)
                yield from self._match_text(call)

    def _match_text(self, call: Call) -> Iterator[SourceMatch]:
        """Match a function that an argument names as text: model.compile(loss="categorical_crossentropy")."""
        for rule in self._naming.texts:
            argument = _argument_passed(call, rule) if call.name.rpartition(".")[2] == rule.method else None
            if argument is not None and isinstance(argument.value, str):
                yield from self._match_name(replace(call, positional=(), keywords={}), rule.under + argument.value)

    def _match_method(self, call: Call) -> Iterator[SourceMatch]:
        """Match a method call by its name alone, unless the object comes from another library."""
        if UNKNOWN not in call.roots and not any(self._naming.owns_name(root) for root in call.roots):
            return
        name = call.name.removeprefix(f"{UNKNOWN}.")
        for class_prefix in self._naming.methods:
            for match in self._match_name(call, class_prefix + name):
                # No other class has a method such as x.at[i].add.
                condition = "" if "[]" in name else f"is its object a {class_prefix[:-1]}?"
                yield replace(match, open_condition=match.open_condition or condition, is_method_guess=True)

    def _match_name(self, call: Call, name: str) -> Iterator[SourceMatch]:
        if call.memory_use in ("written", "unread"):
            return
        for key, pattern in self.sources_named(name):
            results = [self._is_condition_met(call, argument) for argument in pattern.when]
            if False not in results:
                open_arguments = [
                    condition.argument
                    for condition, is_met in zip(pattern.when, results, strict=True)
                    if is_met is None
                ]
                question = pattern.may or (f"its argument {', '.join(open_arguments)}" if open_arguments else "")
                question = question or ("is it read before it is written?" if call.memory_use == "unknown" else "")
                yield SourceMatch(replace(call, name=name), key, open_condition=question)

    def _is_condition_met(self, call: Call, argument: ArgumentCondition) -> bool | None:
        return argument_matches(call, argument, self._naming)


def argument_matches(call: Call, condition: ArgumentCondition, naming: ApiNames | None = None) -> bool | None:
    """Return whether a call meets a condition on an argument; None if the program's text does not show it."""
    passed = _argument_passed(call, condition)
    if call.has_star_args and condition.argument not in call.keywords:
        return None
    if passed is None or passed == ArgumentValue():
        return condition.default  # whether a call without the argument meets it
    if not (condition.values or condition.other_than):
        return False
    value = _literal_value(passed, naming)
    if value is None:
        return None
    return value in condition.values if condition.values else value not in condition.other_than


def _argument_passed(call: Call, rule: ArgumentCondition | NameAsText) -> ArgumentValue | None:
    if rule.argument in call.keywords or rule.at is None:
        return call.keywords.get(rule.argument)
    index = rule.at - call.is_method  # position 0 of a method is its object
    return call.positional[index] if 0 <= index < len(call.positional) else None


def _literal_value(argument: ArgumentValue, naming: ApiNames | None) -> bool | int | float | str | None:
    """Return the value of an argument, or the documented name of a framework's constant; None if it is unknown."""
    if not argument.name or argument.name == "[]":
        return (argument.name or argument.value) if argument.known else None
    return (
        naming.to_documented(argument.name) if naming and naming.owns_name(argument.name.removesuffix("()")) else None
    )


def calls_of(naming: ApiNames, program: Program) -> list[str]:
    """Return the documented names of a framework's functions that a program calls, each once."""
    names = (
        naming.to_documented(call.name)
        for call in program.calls_and_settings
        if not call.is_assignment and not call.is_guess and naming.owns_name(call.name)
    )
    return list(dict.fromkeys(names))


def _is_in_namespace(name: str, namespace: str) -> bool:
    return name.startswith(namespace) and "." not in name[len(namespace) :]


def _normalized_name(name: str) -> str:
    """Return a name that is equal for a class and its function, such as MaxPool2d and max_pool2d."""
    return name.rpartition(".")[2].replace("_", "").lower()


def _base_class_names(name: str) -> Iterator[str]:
    """Yield the names without the number of dimensions, and without `loss`, as functions have them."""
    yield name
    plain = re.sub(r"[123]d$", "", name)
    yield plain
    yield plain.removesuffix("loss")
