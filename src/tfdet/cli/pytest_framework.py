"""Detection of the framework whose ops a test module runs.

The module's imports are decisive: `sys.modules` may contain other frameworks, which other tests import.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType

_OURS = {"tfdet", "tfdet_common", "tfdet_probe", "tfdeterminism"}  # they import all frameworks
_IMPORT_FUNCTIONS = {"__import__", "import_module", "importorskip"}


def find_frameworks(module: ModuleType, path: Path, packages: Mapping[str, str]) -> list[str]:
    """Return the frameworks that the module imports, directly or through other modules of the user.

    The search ends at the first level of imports with a framework. If there is none, return the frameworks that the
    other imported packages contain, or else all those in `sys.modules`. packages: {framework: its package}.
    """
    known = {package: name for name, package in packages.items() if _find_spec(package) is not None}
    visited, other_packages = {module.__name__}, set[str]()
    level = set(_imports(path, module.__name__, module.__package__ or "", module))
    while level:
        if direct := {known[_top_level(name)] for name in level if _top_level(name) in known}:
            return sorted(direct)
        visited |= level
        next_level = set[str]()
        for name in level:
            spec = _user_module_spec(name)
            if spec is None:
                other_packages.add(_top_level(name))
            elif spec.origin:
                next_level.update(_imports(Path(spec.origin), name, spec.parent or "", sys.modules.get(name)))
        level = next_level - visited
    loaded = _loaded_modules(other_packages)
    indirect = {known[package] for package in known if any(_refers_to(module, package) for module in loaded)}
    return sorted(indirect or {known[package] for package in known if package in sys.modules})


def _top_level(name: str) -> str:
    return name.partition(".")[0]


def _imports(path: Path, name: str, package: str, module: ModuleType | None) -> Iterator[str]:
    """Yield the names of the modules that a file imports at any place, and of those that its globals refer to."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):  # not Python source, such as an extension module
        return
    for node in _runtime_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            yield from _imports_from(node, package)
        elif isinstance(node, ast.Call) and (imported := _imported_by_call(node)):
            yield from _with_parents(imported)
    for value in vars(module).values() if module else ():
        if isinstance(value, ModuleType) and value.__name__ != name:
            yield from _with_parents(value.__name__)


def _runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes, except those below `if TYPE_CHECKING`."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            pending += node.orelse
        else:
            pending += ast.iter_child_nodes(node)


def _imports_from(node: ast.ImportFrom, package: str) -> Iterator[str]:
    """Yield the modules that a `from` statement imports: its module, and each of its names that is a module."""
    try:
        base = resolve_name("." * node.level + (node.module or ""), package)
    except ImportError:  # a relative import beyond the top-level package
        return
    yield from _with_parents(base)
    for alias in node.names:
        if (name := f"{base}.{alias.name}") in sys.modules or _find_spec(name):
            yield name


def _imported_by_call(node: ast.Call) -> str | None:
    """Return the module that a call such as `import_module("torch")` imports; None for other calls."""
    function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
    first = node.args[0] if node.args else None
    is_import = function in _IMPORT_FUNCTIONS and isinstance(first, ast.Constant) and isinstance(first.value, str)
    return first.value if is_import and not first.value.startswith(".") else None  # type: ignore[union-attr]


def _with_parents(name: str) -> Iterator[str]:
    """Yield the module and its parent packages, which are imported with it."""
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _user_module_spec(name: str) -> ModuleSpec | None:
    """Return the spec of a module of the user; None for an installed package or the standard library."""
    spec = _find_spec(name)
    if spec is None or spec.origin is None or _top_level(name) in _OURS:
        return None
    if spec.origin in ("built-in", "frozen") or "site-packages" in spec.origin or "dist-packages" in spec.origin:
        return None
    library = Path(sysconfig.get_path("stdlib"))
    return None if Path(spec.origin).is_relative_to(library) else spec


def _find_spec(name: str) -> ModuleSpec | None:
    """Return a module's spec without importing anything."""
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if isinstance(loaded, ModuleSpec):
        return loaded
    parent = _find_spec(name.rpartition(".")[0]) if "." in name else None
    if "." in name and (parent is None or parent.submodule_search_locations is None):
        return None
    return PathFinder.find_spec(name, parent.submodule_search_locations if parent else None)


def _loaded_modules(packages: Iterable[str]) -> list[ModuleType]:
    """Return the loaded modules of these packages, except tfdet's own and the standard library."""
    names = set(packages) - _OURS - set(sys.stdlib_module_names)
    return [
        module
        for name, module in list(sys.modules.items())
        if _top_level(name) in names and isinstance(module, ModuleType)
    ]


def _refers_to(module: ModuleType, package: str) -> bool:
    """Return whether a global variable of the module is a module of the package."""
    return any(isinstance(v, ModuleType) and _top_level(v.__name__) == package for v in list(vars(module).values()))
