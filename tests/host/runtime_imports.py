"""What the modules of runtime/ import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"


def imports(path: Path, root: Path = RUNTIME) -> Iterator[str]:
    """Return the absolute names of all modules and members that a file imports, anywhere in it."""
    package = path.relative_to(root).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{start}.{alias.name}" for alias in node.names)


def import_graph(root: Path = RUNTIME) -> dict[str, set[str]]:
    """Return {module: the modules of the packages in `root` that it imports}; imports inside functions count, too."""
    names = {".".join(path.relative_to(root).with_suffix("").parts): path for path in root.glob("tfdet*/**/*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in names.items()}
    return {
        name: {target for imported in imports(path, root) if (target := _module(imported, modules))} - {name}
        for name, path in modules.items()
    }


def _module(imported: str, modules: dict[str, Path]) -> str | None:
    """Return the module that an imported name is, or is in; None for modules of others."""
    return next((name for name in (imported, imported.rpartition(".")[0]) if name in modules), None)
