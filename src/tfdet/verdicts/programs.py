"""What a Python program calls, by its text: dotted names as their documentation has them, and where."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tfdet.base.errors import DataError

# How programs import what documentation calls otherwise.
_DOCUMENTED = {"tensorflow": "tf", "keras": "tf.keras", "tensorflow_addons": "tfa", "tf.python.keras": "tf.keras"}


@dataclass(frozen=True)
class Call:
    """name: such as tf.nn.bias_add."""

    name: str
    file: str
    line: int


@dataclass(frozen=True)
class Program:
    """environ: what it sets in os.environ before or after whatever."""

    imports: frozenset[str]
    calls: tuple[Call, ...]
    environ: dict[str, str]


def read(paths: list[Path]) -> Program:
    """DataError where one is no Python."""
    imports: set[str] = set()
    calls: list[Call] = []
    environ: dict[str, str] = {}
    for path in paths:
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError) as error:
            raise DataError(f"{path}: {error}", "Name files of Python 3.") from error
        names = dict(_imported(tree))
        imports |= {name.partition(".")[0] for name in names.values()}
        calls += [Call(_documented(name), str(path), line) for name, line in _called(tree, names)]
        environ |= dict(_set(tree))
    return Program(frozenset(imports), tuple(calls), environ)


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(name in the program, what it stands for)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _called(tree: ast.Module, names: dict[str, str]) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (dotted := _dotted(node.func)):
            top, _, rest = dotted.partition(".")
            if top in names:
                yield (f"{names[top]}.{rest}" if rest else names[top]), node.lineno


def _dotted(node: ast.expr) -> str:
    """Empty where it is no dotted name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _documented(name: str) -> str:
    for module, short in _DOCUMENTED.items():
        if name == module or name.startswith(f"{module}."):
            name = short + name[len(module) :]
    return name


def _set(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """os.environ["NAME"] = "VALUE"."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if (
                    isinstance(target, ast.Subscript)
                    and _dotted(target.value).endswith("environ")
                    and isinstance(target.slice, ast.Constant)
                ):
                    yield str(target.slice.value), str(node.value.value)
