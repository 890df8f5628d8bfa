"""Generator of the script unbundle.py from the modules of runtime/unbundle and those of tfdet_common that they import.

The script is plain text, not an archive, so that users on the target host can read what they run; the same modules
always give the same bytes.  To be joined, modules may import each other only as `from package.module import name`,
before any other code, and no two of them may define the same top-level name.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

NAME = "unbundle.py"
_OURS = ("tfdet_common", "unbundle")
_END = 'if __name__ == "__main__":\n    sys.exit(main())\n'


@dataclass(frozen=True)
class Module:
    """A parsed module.

    standard: its imports of the standard library.  needs: the modules of _OURS that it imports.  names: its top-level
    names.  body: its code after the imports.
    """

    name: str
    title: str
    standard: list[str]
    needs: list[str]
    names: list[str]
    body: str


def build(runtime: Path) -> str:
    """Return the text of unbundle.py."""
    modules = _read_with_imports(runtime, "unbundle.main", {})
    _check_names(modules)
    start = (runtime / "unbundle" / "__init__.py").read_text("utf-8").rstrip()
    standard = "\n".join(sorted({line for module in modules.values() for line in module.standard}))
    bodies = [f"# --- {module.name}: {module.title}\n\n{module.body}" for module in modules.values()]
    return "\n\n\n".join([f"{start}\n\n{standard}", *bodies, _END])


def _read_with_imports(runtime: Path, name: str, modules: dict[str, Module]) -> dict[str, Module]:
    """Add the module to `modules`, after those that it imports; return `modules`."""
    if name not in modules:
        module = _read(runtime, name)
        for imported in module.needs:
            _read_with_imports(runtime, imported, modules)
        modules[name] = module
    return modules


def _read(runtime: Path, name: str) -> Module:
    text = runtime.joinpath(*name.split(".")).with_suffix(".py").read_text("utf-8")
    doc, *nodes = ast.parse(text).body
    imports = list(takewhile(lambda node: isinstance(node, (ast.Import, ast.ImportFrom)), nodes))
    rest = nodes[len(imports) :]
    return Module(
        name=name,
        title=ast.unparse(doc).strip("'\""),
        standard=[ast.unparse(node) for node in imports if isinstance(node, ast.Import)],
        needs=[_imported_module(name, node) for node in imports if isinstance(node, ast.ImportFrom)],
        names=[name for node in rest for name in _defined_names(node)],
        body="\n".join(text.splitlines()[[doc, *imports][-1].end_lineno :]).strip("\n"),
    )


def _imported_module(name: str, node: ast.ImportFrom) -> str:
    """Return the module of _OURS that the module `name` imports; ValueError for other forms of import."""
    package, _, module = (node.module or "").partition(".")
    if node.level or package not in _OURS or not module or any(alias.asname for alias in node.names):
        raise ValueError(f"{name}: `{ast.unparse(node)}` cannot be joined into {NAME}")
    return f"{package}.{module}"


def _check_names(modules: dict[str, Module]) -> None:
    owners: dict[str, str] = {}  # name: module
    for module in modules.values():
        for name in module.names:
            if owners.setdefault(name, module.name) != module.name:
                raise ValueError(f"{name} is in {owners[name]} and in {module.name}: {NAME} cannot hold both")


def _defined_names(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
