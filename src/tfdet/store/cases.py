"""The cases of the shared suite: its @case functions, which the host reads from the source text and never imports."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Final

from tfdet.base.errors import DataError
from tfdet.base.folders import is_there, list_entries
from tfdet.base.paths import Project
from tfdet.base.strict_json import read_json
from tfdet.base.untrusted import read_text
from tfdet.matrix import ops
from tfdet_probe import frameworks
from tfdet_probe.core import normalized_source
from tfdet_probe.core.registry import HOST_MODE, case_key, code_hash, source_parameters

# Arguments of @case that are not parameters of the case.  unplaced: why it has no ops whose device could be checked.
_NO_PARAMETERS = ("ops", "modes", "unplaced")

EARLIER_HASHES: Final = "earlier-hashes.json"  # beside the folders of the evidence


@dataclass(frozen=True)
class Cases:
    """The cases of a suite.

    by_hash: {(source, hash): (key, mode) of each case}; None if they cannot be read from the source text.
    arguments: {hash: names of the arguments of its @case}.
    """

    by_hash: Mapping[tuple[str, str], frozenset[tuple[str, str]] | None]
    arguments: Mapping[str, frozenset[str]]

    def has(self, source: str, code: str, key: str, mode: str) -> bool:
        """Return whether the suite can have made a record of this case; True for a hash that is not current."""
        keys_and_modes = self.by_hash.get((source, code))
        return keys_and_modes is None or (key, mode) in keys_and_modes

    def is_of_another_source(self, source: str, code: str) -> bool:
        """Return whether this is the hash of a case that only other sources have."""
        return (source, code) not in self.by_hash and code in self._codes

    def names_ops(self, code: str, mode: str) -> bool:
        """Return whether the probe requires that ops of this case were seen on the device; False if it is not known."""
        # HOST_MODE: the case is plain Python, without tensors.
        return mode != HOST_MODE and "unplaced" not in self.arguments.get(code, {"unplaced"})

    def has_ranks(self, code: str) -> bool:
        """Return whether several processes compute this case; True for a hash that is not current."""
        return "ranks" in self.arguments.get(code, {"ranks"})

    @cached_property
    def _codes(self) -> frozenset[str]:
        return frozenset(code for _, code in self.by_hash)

    def hashes(self) -> dict[str, set[str]]:
        """Return {source: hashes of its @case functions}; a record with another hash is stale."""
        by_source: dict[str, set[str]] = {}
        for source, code in self.by_hash:
            by_source.setdefault(source, set()).add(code)
        return by_source


def current_cases(project: Project) -> Cases:
    """Return the cases of the current suite, also under the hashes by which older records name them."""
    by_hash: dict[tuple[str, str], frozenset[tuple[str, str]] | None] = {}
    arguments: dict[str, frozenset[str]] = {}
    parametrized_sources = cache(partial(_parametrized_sources, project))  # a framework has many ops
    for path in list_entries(project.suite(""), "*/test_*.py"):
        text = read_text(path)
        tree = _parse(path, text)
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        constants, modes = _constants(tree), _modes(path.parent.name)
        for name, case in normalized_source.normalize_cases(text).items():
            keys = _keys(functions[name], constants, modes) if name in functions else None
            sources = parametrized_sources(path.parent.name) if source_parameters(case.source) else [case.source]
            code = code_hash(case.text)
            by_hash.update({(source, code): keys for source in sources})
            if name in functions:
                arguments[code] = frozenset(_arguments(functions[name]))
    for old, new in earlier_hashes(project.evidence).items():
        by_hash.update({(source, old): keys for (source, code), keys in by_hash.items() if code == new})
        if new in arguments:
            arguments[old] = arguments[new]
    return Cases(by_hash, arguments)


def _parametrized_sources(project: Project, framework: str) -> list[str]:
    """Return the sources of a case whose source has a parameter: one for each op that the framework's builds list."""
    names = ops.load_names(project.matrix, framework)
    builds = ops.load_ops(project.matrix, framework).values()
    return sorted({names.prefix + op.key for build in builds for op in build.ops}) if names else []


def current_hashes(project: Project) -> dict[str, set[str]]:
    return current_cases(project).hashes()


def earlier_hashes(evidence: Path) -> dict[str, str]:
    """Return {earlier hash of a case: its hash at the change of the hash method}; valid until the case changes."""
    path = evidence / EARLIER_HASHES
    if not is_there(path):
        return {}
    content = read_json(path)
    earlier = content.get("hashes") if isinstance(content, dict) else None
    if not isinstance(earlier, dict) or not all(isinstance(new, str) for new in earlier.values()):
        raise DataError(f"{path}: hashes: not an object of hashes", "Restore it: git checkout matrix")
    return earlier


def _parse(path: Path, text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise DataError(f"{path}:{error.lineno}: {error.msg}") from error


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    return {target.id: node.value for node in assigned for target in node.targets if isinstance(target, ast.Name)}


def _modes(framework: str) -> tuple[str, ...] | None:
    """Return the modes of a case that names none; None if this tfdet has no adapter for the framework."""
    return frameworks.load_adapter(framework).modes if framework in frameworks.names() else None


def _keys(
    function: ast.FunctionDef, constants: Mapping[str, ast.expr], framework_modes: tuple[str, ...] | None
) -> frozenset[tuple[str, str]] | None:
    """Return the keys that the arguments of @case give; None if an argument is not a literal or a constant."""
    call, arguments = _call_of_case(function), _arguments(function)
    try:
        modes = (
            ast.literal_eval(_resolve_constant(arguments["modes"], constants))
            if "modes" in arguments
            else framework_modes
        )
        source = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else ""
        names = sorted(set(arguments) - {*_NO_PARAMETERS, *source_parameters(str(source))})
        values = [ast.literal_eval(_resolve_constant(arguments[name], constants)) for name in names]
    except ValueError:
        return None
    if modes is None:
        return None
    return frozenset(
        (case_key(function.name, combination, mode), mode)
        for combination in itertools.product(*values)
        for mode in modes
    )


def _call_of_case(function: ast.FunctionDef) -> ast.Call:
    return next(node for node in function.decorator_list if isinstance(node, ast.Call))


def _arguments(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Return the named arguments of @case."""
    return {keyword.arg: keyword.value for keyword in _call_of_case(function).keywords if keyword.arg}


def _resolve_constant(node: ast.expr, constants: Mapping[str, ast.expr]) -> ast.expr:
    return constants.get(node.id, node) if isinstance(node, ast.Name) else node
