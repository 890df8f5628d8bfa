"""Write the tables (README.md, docs, known.json, advice.json), and check them against the evidence."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path

from tfdet.base.errors import EXIT_CODES, DataError, ExitCode, TfdetError
from tfdet.base.files import write_atomic
from tfdet.base.folders import is_there, listed, walked
from tfdet.base.parallel import parallel_map, pays_to_read
from tfdet.base.paths import Project
from tfdet.matrix import ops
from tfdet.matrix.devices import CPU
from tfdet.matrix.models import SourceGroup
from tfdet.publish import (
    advice,
    audit_tables,
    batch_invariance,
    markdown,
    op_comparison,
    recipe,
    tables,
    upstream_reports,
)
from tfdet.store.batch_invariance import folder
from tfdet.store.cases import current_cases
from tfdet.store.consistency import ConsistencyRules
from tfdet.store.evidence import EvidenceStore
from tfdet.store.signatures import SUFFIX, AttestationStore, folder_of
from tfdet.verdicts import remaining_sources
from tfdet.verdicts.status import Status
from tfdeterminism import recipes

_BLOCK = re.compile(r"(<!-- tfdet:begin (?P<name>[\w-]+) -->\n)(?P<body>.*?)(<!-- tfdet:end (?P=name) -->)", re.S)


class OutOfDateError(TfdetError):
    code = ExitCode.CONTRADICTED


# Which blocks each file holds, each exactly once: a marker that was broken would guard nothing.
_TARGETS = {
    "README.md": ("gpu", "provenance"),
    "docs/reference/solutions.md": ("recipes", "solutions", "autotune", "provenance"),
    "docs/reference/status/gpu.md": ("gpu", "historic", "possible", "later", "candidates", "provenance"),
    "docs/reference/status/cpu.md": ("cpu", "provenance"),
    "docs/reference/status/builds.md": ("audits", "files", "provenance"),
    "docs/reference/status/others.md": ("others", "provenance"),
    "docs/reference/status/claims.md": ("claims", "provenance"),
    "docs/reference/status/measured.md": ("measured", "provenance"),
    "docs/reference/exit-codes.md": ("exit-codes",),
    "docs/reference/batch-invariance.md": ("batches", "provenance"),
    "docs/reference/audit-findings.md": ("found", "apart", "unclaimed", "variables", "messages", "provenance"),
}
# And those of a framework's two pages, by what their names end in.
_PAGES = {"": ("coverage", "join", "provenance"), "-conflicts": ("disagreements", "provenance")}


def write(project: Project, status: Status) -> list[Path]:
    """Bring the generated blocks up to date; the files that changed.  No table is made of what `check` refuses."""
    _check_all_records(project, status)
    changed = []
    for path, old, new in _texts(project, status):
        if new != old:
            write_atomic(path, new)
            changed.append(path)
    return changed


def check(project: Project, status: Status) -> None:
    """OutOfDate, with the first differing lines, if a table is not what the evidence gives."""
    _check_all_records(project, status)
    for path, old, new in _texts(project, status):
        if new != old:
            diff = difflib.unified_diff(old.splitlines(), new.splitlines(), str(path), "what the evidence gives", n=0)
            raise OutOfDateError(
                "\n".join([line[:200] for line in diff][:12]) or f"{path}: its line ends were changed",
                "Run `tfdet status --write`; a table is never edited by hand.",
            )


def _check_all_records(project: Project, status: Status) -> None:
    """Every record is read once more, whole and strictly; DataError names those that cannot be."""
    rules = ConsistencyRules.from_matrix(status.matrix, current_cases(project))
    store = EvidenceStore.open(project, rules)
    files = store.files()
    read = partial(store.find_faults_of, find_faults=rules.faults_of_new)
    faults = [fault for some in parallel_map(read, files, enough=pays_to_read(files)) for fault in some]
    if faults:
        raise DataError("\n".join(dict.fromkeys(faults)), "Measure again, or mend the matrix.")
    if forged := AttestationStore.open(project, status.matrix).find_faults():
        raise DataError(
            "\n".join(forged), "Remove envelopes that no trusted key signed: git checkout matrix/signatures."
        )


def _texts(project: Project, status: Status) -> list[tuple[Path, str, str]]:
    """(file, its text, what its text should be) of each target."""
    whole, status = status, replace(status, matrix=status.matrix.for_published_framework)
    blocks = _Blocks(project, status)
    texts = []
    frameworks = {
        key: op_comparison.compare_ops(project.matrix, whole, key)
        for key, f in whole.matrix.frameworks.items()
        if f.page
    }
    for name, expected, joins in _targets(whole, frameworks):
        path = project.root / name
        old = path.read_bytes().decode("utf-8")
        found = [match["name"] for match in _BLOCK.finditer(old)]
        if sorted(found) != sorted(expected) or old.count("tfdet:begin") + old.count("tfdet:end") != 2 * len(expected):
            raise DataError(
                f"{path}: its markers are not those of {', '.join(expected)}, each once",
                "Restore the lines <!-- tfdet:begin NAME --> and <!-- tfdet:end NAME -->.",
            )
        texts.append((path, old, blocks.fill(old, joins)))
    generated: dict[Path, str] = {
        project.known_file: remaining_sources.to_json(status),
        project.advice_file: advice.to_json(status),
    }
    for key, framework in whole.matrix.frameworks.items():
        if framework.library:
            generated[project.known_file_of(framework.library)] = recipe.remaining_text(whole, key)
    for key, joins in frameworks.items():
        generated.update(upstream_reports.texts(project, key, joins))
    for path, text in generated.items():
        texts.append((path, path.read_bytes().decode("utf-8") if is_there(path) else "", text))
    return texts


def _targets(
    status: Status, frameworks: Mapping[str, list[op_comparison.OpComparison]]
) -> Iterator[tuple[str, tuple[str, ...], list[op_comparison.OpComparison]]]:
    """(file, its blocks, the joins of the framework that it is about) of each file with blocks."""
    for name, blocks in _TARGETS.items():
        yield name, blocks, []
    for key, joins in frameworks.items():
        stem = str(status.matrix.frameworks[key].page).removesuffix(".md")
        yield from ((f"docs/reference/{stem}{ending}.md", blocks, joins) for ending, blocks in _PAGES.items())


class _Blocks:
    """The templates of the blocks, and what they show."""

    def __init__(self, project: Project, status: Status) -> None:
        folder = files("tfdet.publish") / "templates"
        sources = {item.name: item.read_text("utf-8") for item in folder.iterdir() if item.name.endswith(".md.j2")}
        self._context = _context(project, status)
        self._engine = markdown.template_environment(sources)

    def fill(self, text: str, joins: Sequence[op_comparison.OpComparison] = ()) -> str:
        """A file's text with each of its blocks as it should be."""
        return _BLOCK.sub(lambda match: match[1] + self._text(match["name"], joins) + match[4], text)

    def _text(self, name: str, joins: Sequence[op_comparison.OpComparison]) -> str:
        return self._engine.get_template(f"{name}.md.j2").render(self._context, joins=joins)


def _context(project: Project, status: Status) -> dict[str, object]:
    # Of a card that ran another framework alone there is nothing to show.
    shown = {
        device: tables.measured_table(status, device) for device in (*status.measured_models, *status.emulated_models)
    }
    return {
        "title": ops.title,
        "columns": tables.columns(status),
        "cell": lambda key, column: tables.claim_cell(status, key, column),
        "groups": {group: (title, _group(status, group)) for group, title in tables.GROUPS.items()},
        "solutions": status.matrix.solutions,
        "sources": status.matrix.sources,
        "cpu": tables.measured_table(status, CPU),
        "beside": {package: tables.measured_table(status, CPU, package) for package in _packages(status)},
        "devices": {device: table for device, table in shown.items() if table.environments},
        "audits": audit_tables.AuditTables(status),
        "batches": batch_invariance.tables(project),
        "exit_codes": EXIT_CODES,
        "provenance": provenance(project),
        "recipes": recipes.RECIPES,
        "newest": remaining_sources.newest(status.matrix),
        "patches": [(patch, tables.patch_version_ranges(status.matrix, patch)) for patch in recipes.PATCHES.values()],
    }


def _packages(status: Status) -> list[str]:
    return sorted({e.package for e in status.matrix.environments.values() if e.package})


def _group(status: Status, group: SourceGroup) -> list[str]:
    mine = [(source.order, key) for key, source in status.matrix.sources.items() if source.group == group]
    return [key for _, key in sorted(mine)]


def provenance(project: Project) -> dict[str, object]:
    """What the tables were made from: any change of a record or a claim changes the fingerprint."""
    digest = hashlib.sha256()
    records = 0
    signatures = folder_of(project.evidence)
    files_read = [*walked(project.matrix, "*.toml"), *listed(project.evidence, "*/*.jsonl")]
    files_read += [*listed(signatures, f"*/*{SUFFIX}"), *listed(project.audits, "*.json")]
    files_read += [*listed(project.matrix / "ops", "*/*.json"), *listed(project.matrix / "alerts", "*.json")]
    files_read += listed(folder(project), "*/*.jsonl")
    for path in sorted(files_read):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(project.matrix)}\n{len(content)}\n".encode() + content)
        of_evidence = path.is_relative_to(project.evidence) and path.suffix == ".jsonl"
        records += content.count(b"\n") if of_evidence and not path.name.endswith(SUFFIX) else 0
    return {"records": records, "fingerprint": digest.hexdigest()[:16]}
