"""Short kernel names, for display and pattern matching: without return type, arguments and version namespaces."""

from __future__ import annotations

import re
from functools import cache

from tfdet.audit.demangle import demangle

_DELIMITERS = re.compile(r"\(anonymous namespace\)|->|[<>( ]")
_VERSIONED = re.compile(r"::(?:CUB|THRUST)_\d+\w*|::_V\d+(?=::)")  # inline namespaces that change with each release


def signatures(mangled: list[str]) -> dict[str, str]:
    """Return {mangled name: demangled name with template arguments, without return type and function arguments}."""
    return {name: signature(text) for name, text in zip(mangled, demangle(mangled), strict=True)}


@cache
def signature(demangled: str) -> str:
    """Convert `void a::(anonymous namespace)::K<float>(int, float*)` to `a::(anonymous namespace)::K<float>`."""
    text = _VERSIONED.sub("", demangled)
    start, depth = 0, 0
    for match in _DELIMITERS.finditer(text):
        token = match[0]
        if token == "<":
            depth += 1
        elif token == ">":
            depth -= 1
        elif depth == 0 and token == " ":
            start = match.end()  # what came before is the return type
        elif depth == 0 and token == "(":
            return text[start : match.start()]
    return text[start:]


@cache
def family(signature: str) -> str:
    """Return a kernel's name without its template arguments, as in a source file."""
    characters: list[str] = []
    depth = 0
    for character in signature:
        if character == "<":
            depth += 1
        elif character == ">":
            depth -= 1
        elif depth == 0:
            characters.append(character)
    return "".join(characters)
