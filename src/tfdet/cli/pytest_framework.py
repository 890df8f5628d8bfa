"""Find the framework whose ops a test module runs, by its imports: other tests may have loaded other frameworks."""

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
_IMPORTING = {"__import__", "import_module", "importorskip"}  # functions that take a module's name


def frameworks_used(module: ModuleType, path: Path, packages: Mapping[str, str]) -> list[str]:
    """Frameworks of `packages` (name: package) that the module imports, itself or by the user's own modules: of the
    nearest of these; where none does, those that its other packages have loaded; else those that are loaded at all.
    """
    known = {package: name for name, package in packages.items() if _find(package) is not None}
    seen, others = {module.__name__}, set[str]()
    nearest = set(_imports(path, module.__name__, module.__package__ or "", module))
    while nearest:
        if found := {known[_top_level(name)] for name in nearest if _top_level(name) in known}:
            return sorted(found)
        seen |= nearest
        further = set[str]()
        for name in nearest:
            spec = _user_module_spec(name)
            if spec is None:
                others.add(_top_level(name))
            elif spec.origin:
                further.update(_imports(Path(spec.origin), name, spec.parent or "", sys.modules.get(name)))
        nearest = further - seen
    brought = {known[top] for top in known if any(_holds(one, top) for one in _loaded(others))}
    return sorted(brought or {known[top] for top in known if top in sys.modules})


def _top_level(name: str) -> str:
    return name.partition(".")[0]


def _imports(path: Path, name: str, package: str, module: ModuleType | None) -> Iterator[str]:
    """Names of the modules that a file imports, wherever it does: a `from` may be of a module or of a name in it."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):  # of compiled code
        return
    for node in _executed(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            yield from _from(node, package)
        elif isinstance(node, ast.Call) and (called := _called(node)):
            yield from _with_parents(called)
    for value in vars(module).values() if module else ():
        if isinstance(value, ModuleType) and value.__name__ != name:
            yield from _with_parents(value.__name__)


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those for type checkers."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            left += node.orelse
        else:
            left += ast.iter_child_nodes(node)


def _from(node: ast.ImportFrom, package: str) -> Iterator[str]:
    try:
        base = resolve_name("." * node.level + (node.module or ""), package)
    except ImportError:  # relative, where nothing is above
        return
    yield from _with_parents(base)
    for alias in node.names:
        if (name := f"{base}.{alias.name}") in sys.modules or _find(name):
            yield name


def _called(node: ast.Call) -> str | None:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
    first = node.args[0] if node.args else None
    named = called in _IMPORTING and isinstance(first, ast.Constant) and isinstance(first.value, str)
    return first.value if named and not first.value.startswith(".") else None  # type: ignore[union-attr]


def _with_parents(name: str) -> Iterator[str]:
    """`import a.b` runs a, too."""
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _user_module_spec(name: str) -> ModuleSpec | None:
    """Of a module that is the user's own: none that was installed or came with Python."""
    spec = _find(name)
    if spec is None or spec.origin is None or _top_level(name) in _OURS:
        return None
    if spec.origin in ("built-in", "frozen") or "site-packages" in spec.origin or "dist-packages" in spec.origin:
        return None
    library = Path(sysconfig.get_path("stdlib"))
    return None if Path(spec.origin).is_relative_to(library) else spec


def _find(name: str) -> ModuleSpec | None:
    """Its spec; nothing is imported for that."""
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if isinstance(loaded, ModuleSpec):
        return loaded
    parent = _find(name.rpartition(".")[0]) if "." in name else None
    if "." in name and (parent is None or parent.submodule_search_locations is None):
        return None
    return PathFinder.find_spec(name, parent.submodule_search_locations if parent else None)


def _loaded(tops: Iterable[str]) -> list[ModuleType]:
    wanted = set(tops) - _OURS - set(sys.stdlib_module_names)
    return [
        one for name, one in list(sys.modules.items()) if _top_level(name) in wanted and isinstance(one, ModuleType)
    ]


def _holds(module: ModuleType, package: str) -> bool:
    return any(isinstance(v, ModuleType) and _top_level(v.__name__) == package for v in list(vars(module).values()))
