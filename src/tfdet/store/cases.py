"""The cases of the shared suite as the host sees them: read from source text, never imported."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Final

from tfdet.base.errors import DataError
from tfdet.base.folders import is_there, listed
from tfdet.base.paths import Project
from tfdet.base.strict_json import read_json
from tfdet.base.untrusted import read_text
from tfdet.matrix import ops
from tfdet_probe import frameworks
from tfdet_probe.core import normalized_source
from tfdet_probe.core.registry import case_key, code_hash, source_parameters

_NO_PARAMETERS = ("ops", "modes", "unplaced")


EARLIER_HASHES: Final = "earlier-hashes.json"  # beside the folders of the evidence


@dataclass(frozen=True)
class Cases:
    """By source and hash: the (key, mode) of each case; None where the text alone does not tell them."""

    by_hash: Mapping[tuple[str, str], frozenset[tuple[str, str]] | None]

    def has(self, source: str, code: str, key: str, mode: str) -> bool:
        """Could the suite have made a record of this case?  Of a hash that is not current nobody knows."""
        known = self.by_hash.get((source, code))
        return known is None or (key, mode) in known

    def is_anothers(self, source: str, code: str) -> bool:
        """Is this the hash of a case that other sources have, and this one does not?"""
        return (source, code) not in self.by_hash and code in self._codes

    @cached_property
    def _codes(self) -> frozenset[str]:
        return frozenset(code for _, code in self.by_hash)

    def hashes(self) -> dict[str, set[str]]:
        """{source: hashes of its @case functions}; a record with another hash is stale."""
        found: dict[str, set[str]] = {}
        for source, code in self.by_hash:
            found.setdefault(source, set()).add(code)
        return found


def current_cases(project: Project) -> Cases:
    """Of the suite as it is; under the hashes, too, that older records know its cases by."""
    found: dict[tuple[str, str], frozenset[tuple[str, str]] | None] = {}
    named = cache(partial(_named, project))  # a framework's lists are long, and many of its cases are named after them
    for path in listed(project.suite(""), "*/test_*.py"):
        text = read_text(path)
        tree = _parsed(path, text)
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        constants, modes = _constants(tree), _modes(path.parent.name)
        for name, case in normalized_source.normalize_cases(text).items():
            keys = _keys(functions[name], constants, modes) if name in functions else None
            sources = named(path.parent.name) if source_parameters(case.source) else [case.source]
            code = code_hash(case.text)
            found.update({(source, code): keys for source in sources})
    for old, new in earlier_hashes(project.evidence).items():
        found.update({(source, old): keys for (source, code), keys in found.items() if code == new})
    return Cases(found)


def _named(project: Project, framework: str) -> list[str]:
    """The sources of a case that is named after a parameter, whose values the framework's builds tell."""
    names = ops.load_names(project.matrix, framework)
    known = ops.load_ops(project.matrix, framework).values()
    return sorted({names.prefix + op.key for some in known for op in some.ops}) if names else []


def current_hashes(project: Project) -> dict[str, set[str]]:
    return current_cases(project).hashes()


def earlier_hashes(evidence: Path) -> dict[str, str]:
    """Earlier hash of a case -> its hash when the way of hashing changed.  Of no use once the case has another."""
    path = evidence / EARLIER_HASHES
    if not is_there(path):
        return {}
    content = read_json(path)
    earlier = content.get("hashes") if isinstance(content, dict) else None
    if not isinstance(earlier, dict) or not all(isinstance(new, str) for new in earlier.values()):
        raise DataError(f"{path}: hashes: not an object of hashes", "Restore it: git checkout matrix")
    return earlier


def _parsed(path: Path, text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise DataError(f"{path}:{error.lineno}: {error.msg}") from error


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    return {target.id: node.value for node in assigned for target in node.targets if isinstance(target, ast.Name)}


def _modes(framework: str) -> tuple[str, ...] | None:
    """Of a case that names none; None where this tfdet has no adapter of the framework."""
    return frameworks.load_adapter(framework).modes if framework in frameworks.names() else None


def _keys(
    function: ast.FunctionDef, constants: Mapping[str, ast.expr], framework_modes: tuple[str, ...] | None
) -> frozenset[tuple[str, str]] | None:
    """The keys that the arguments of @case give, where they are plain values."""
    call = next(node for node in function.decorator_list if isinstance(node, ast.Call))
    given = {word.arg: word.value for word in call.keywords if word.arg}
    try:
        modes = ast.literal_eval(_value(given["modes"], constants)) if "modes" in given else framework_modes
        source = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else ""
        names = sorted(set(given) - {*_NO_PARAMETERS, *source_parameters(str(source))})
        values = [ast.literal_eval(_value(given[name], constants)) for name in names]
    except ValueError:
        return None
    if modes is None:
        return None
    return frozenset(
        (case_key(function.name, some, mode), mode) for some in itertools.product(*values) for mode in modes
    )


def _value(node: ast.expr, constants: Mapping[str, ast.expr]) -> ast.expr:
    return constants.get(node.id, node) if isinstance(node, ast.Name) else node
