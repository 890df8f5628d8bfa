"""Parse Python programs and notebooks: what they import, call and set, and where, by their text alone."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tfdet.base.errors import DataError
from tfdet.base.untrusted import read_bytes
from tfdet.verdicts import notebooks
from tfdet.verdicts.entropy.find_entropy import find_entropy
from tfdet.verdicts.entropy.rule import Rule
from tfdet.verdicts.ignore_comments import Ignore, find_ignores
from tfdet.verdicts.static_analysis import Call, NameResolver, SourceUnit, calls, environment, settings

__all__ = ["Call", "Program", "parse_programs"]

_ADVICE = "Name files of Python 3."
_MAX_BYTES = 1 << 26


@dataclass(frozen=True)
class Program:
    """The imports, calls and settings of a program.

    calls_and_settings: calls of imported names, and assignments, in source order.  methods: calls of objects' methods.
    environ: the variables that it sets in os.environ anywhere.  ignores: its comments that suppress findings.
    entropy: (rule, call) of each input that can differ between runs.
    """

    imports: frozenset[str]
    calls_and_settings: tuple[Call, ...]
    methods: tuple[Call, ...]
    environ: dict[str, str]
    ignores: frozenset[Ignore] = frozenset()
    entropy: tuple[tuple[Rule, Call], ...] = ()


def parse_programs(paths: list[Path]) -> Program:
    """Parse files as one program; raise DataError if one is not Python 3."""
    imports: set[str] = set()
    calls_and_settings: list[Call] = []
    methods: list[Call] = []
    environ: dict[str, str] = {}
    ignores: set[Ignore] = set()
    entropy: list[tuple[Rule, Call]] = []
    for path in paths:
        units = list(_units(path))
        ignores.update(ignore for unit in units for ignore in unit.ignores)
        names = NameResolver(node for unit in units for node in unit.nodes)
        imports |= set(names.imported.values())
        for unit in units:
            entropy += find_entropy(unit, names)
            unit_calls = list(calls(unit, names))
            methods += [call for call in unit_calls if call.is_method]
            functions = [call for call in unit_calls if not call.is_method]
            calls_and_settings += sorted([*functions, *settings(unit, names)], key=lambda call: call.line)
            environ |= dict(environment(unit))
    return Program(
        frozenset(imports), tuple(calls_and_settings), tuple(methods), environ, frozenset(ignores), tuple(entropy)
    )


def _units(path: Path) -> Iterator[SourceUnit]:
    if path.suffix.lower() != notebooks.SUFFIX:
        content = read_bytes(path, _ADVICE, _MAX_BYTES)
        yield SourceUnit(_parse(content, str(path)), str(path), ignores=tuple(find_ignores(content, str(path))))
        return
    for number, text in notebooks.cells(path):
        where = f"{path}: cell {number}"
        try:
            tree = _parse(text, where)
        except DataError:
            text = notebooks.python(text)
            tree = _parse(text, where)
        yield SourceUnit(tree, str(path), number, tuple(find_ignores(text, str(path), number)))


def _parse(text: bytes | str, where: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about the program's text
            return ast.parse(text)
    except (RecursionError, MemoryError) as error:
        raise DataError(
            f"{where}: an expression is nested too deeply to be read", "Split it, or leave this file out."
        ) from error
    except SyntaxError as error:  # str(error) would name the file <unknown>
        line = f":{error.lineno}" if error.lineno else ""
        raise DataError(f"{where}{line}: not Python 3: {error.msg}", _ADVICE) from error
    except ValueError as error:
        raise DataError(f"{where}: not Python 3: {error}", _ADVICE) from error
