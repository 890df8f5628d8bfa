"""Kernel names for people and patterns: without return type, arguments and the noise of versions."""

from __future__ import annotations

import re
from functools import cache

from tfdet.audit.demangle import demangle

_DELIMITERS = re.compile(r"\(anonymous namespace\)|->|[<>( ]")
_VERSIONED = re.compile(r"::(?:CUB|THRUST)_\d+\w*|::_V\d+(?=::)")  # inline namespaces that change with each release


def signatures(mangled: list[str]) -> dict[str, str]:
    """{mangled: demangled name with template arguments, without return type and function arguments}."""
    return {name: signature(text) for name, text in zip(mangled, demangle(mangled), strict=True)}


@cache
def signature(demangled: str) -> str:
    """`void a::(anonymous namespace)::K<float>(int, float*)` is `a::(anonymous namespace)::K<float>`."""
    text = _VERSIONED.sub("", demangled)
    start, depth = 0, 0
    for found in _DELIMITERS.finditer(text):
        token = found[0]
        if token == "<":
            depth += 1
        elif token == ">":
            depth -= 1
        elif depth == 0 and token == " ":
            start = found.end()  # what came before is the return type
        elif depth == 0 and token == "(":
            return text[start : found.start()]
    return text[start:]


@cache
def family(signature: str) -> str:
    """A kernel's name without its template arguments: what a source file calls it."""
    kept: list[str] = []
    depth = 0
    for character in signature:
        if character == "<":
            depth += 1
        elif character == ">":
            depth -= 1
        elif depth == 0:
            kept.append(character)
    return "".join(kept)
