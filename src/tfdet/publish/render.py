"""Write the generated files (tables in README.md and docs, known.json, advice.json), and check them."""

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
from tfdet.base.folders import is_there, list_entries, walk_files
from tfdet.base.parallel import parallel_map, should_read_in_processes
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
    """A generated file is not what the evidence gives."""

    code = ExitCode.CONTRADICTED


# {file: its generated blocks}; each must be there exactly once, so that a damaged marker is detected.
# A block has the name of its template.  found: audit findings; apart: their conflicts with runs on the virtual GPU;
# join: a framework's documentation of its ops, with measurements.
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
    "docs/reference/audit-findings.md": ("found", "apart", "without-source", "variables", "messages", "provenance"),
}
# {ending of the name of a framework's page: its blocks}
_PAGES = {"": ("coverage", "join", "provenance"), "-conflicts": ("disagreements", "provenance")}


def write(project: Project, status: Status) -> list[Path]:
    """Update the generated blocks and files; return those that changed.  Raise DataError if the evidence is invalid."""
    _check_all_records(project, status)
    changed = []
    for path, old, new in _texts(project, status):
        if new != old:
            write_atomic(path, new)
            changed.append(path)
    return changed


def check(project: Project, status: Status) -> None:
    """Raise OutOfDateError, with the first differing lines, if a file is not what the evidence gives."""
    _check_all_records(project, status)
    for path, old, new in _texts(project, status):
        if new != old:
            diff = difflib.unified_diff(old.splitlines(), new.splitlines(), str(path), "what the evidence gives", n=0)
            raise OutOfDateError(
                "\n".join([line[:200] for line in diff][:12]) or f"{path}: its line ends were changed",
                "Run `tfdet status --write`; a table is never edited by hand.",
            )


def _check_all_records(project: Project, status: Status) -> None:
    """Read all records and envelopes again with the strict readers; raise DataError for invalid ones."""
    rules = ConsistencyRules.from_matrix(status.matrix, current_cases(project))
    store = EvidenceStore.open(project, rules)
    files = store.files()
    read = partial(store.find_faults_of, find_faults=rules.faults_of_new)
    faults = [
        fault
        for file_faults in parallel_map(read, files, use_processes=should_read_in_processes(files))
        for fault in file_faults
    ]
    if faults:
        raise DataError("\n".join(dict.fromkeys(faults)), "Measure again, or correct the matrix.")
    if envelope_faults := AttestationStore.open(project, status.matrix).find_faults():
        raise DataError(
            "\n".join(envelope_faults), "Remove envelopes that no trusted key signed: git checkout matrix/signatures."
        )


def _texts(project: Project, status: Status) -> list[tuple[Path, str, str]]:
    """Return (file, its text, the expected text) of each generated file."""
    full_status, status = status, replace(status, matrix=status.matrix.for_published_framework)
    blocks = _Blocks(project, status)
    texts = []
    comparisons_by_framework = {
        key: op_comparison.compare_ops(project.matrix, full_status, key)
        for key, framework in full_status.matrix.frameworks.items()
        if framework.page
    }
    for name, expected, comparisons in _targets(full_status, comparisons_by_framework):
        path = project.root / name
        old = path.read_bytes().decode("utf-8")
        marked = [match["name"] for match in _BLOCK.finditer(old)]
        if sorted(marked) != sorted(expected) or old.count("tfdet:begin") + old.count("tfdet:end") != 2 * len(expected):
            raise DataError(
                f"{path}: its markers are not those of {', '.join(expected)}, each once",
                "Restore the lines <!-- tfdet:begin NAME --> and <!-- tfdet:end NAME -->.",
            )
        texts.append((path, old, blocks.fill(old, comparisons)))
    generated: dict[Path, str] = {
        project.known_file: remaining_sources.to_json(status),
        project.advice_file: advice.to_json(status),
    }
    for key, framework in full_status.matrix.frameworks.items():
        if framework.library:
            generated[project.known_file_of(framework.library)] = recipe.remaining_text(full_status, key)
    for key, comparisons in comparisons_by_framework.items():
        generated.update(upstream_reports.texts(project, key, comparisons))
    for path, text in generated.items():
        texts.append((path, path.read_bytes().decode("utf-8") if is_there(path) else "", text))
    return texts


def _targets(
    status: Status, comparisons_by_framework: Mapping[str, list[op_comparison.OpComparison]]
) -> Iterator[tuple[str, tuple[str, ...], list[op_comparison.OpComparison]]]:
    """Yield (file, its blocks, the op comparisons of its framework) of each file with blocks."""
    for name, blocks in _TARGETS.items():
        yield name, blocks, []
    for key, comparisons in comparisons_by_framework.items():
        stem = str(status.matrix.frameworks[key].page).removesuffix(".md")
        yield from ((f"docs/reference/{stem}{ending}.md", blocks, comparisons) for ending, blocks in _PAGES.items())


class _Blocks:
    """Renders the templates of the blocks."""

    def __init__(self, project: Project, status: Status) -> None:
        folder = files("tfdet.publish") / "templates"
        sources = {item.name: item.read_text("utf-8") for item in folder.iterdir() if item.name.endswith(".md.j2")}
        self._context = _context(project, status)
        self._engine = markdown.template_environment(sources)

    def fill(self, text: str, comparisons: Sequence[op_comparison.OpComparison] = ()) -> str:
        """Return a file's text with its blocks filled in."""
        return _BLOCK.sub(lambda match: match[1] + self._text(match["name"], comparisons) + match[4], text)

    def _text(self, name: str, comparisons: Sequence[op_comparison.OpComparison]) -> str:
        return self._engine.get_template(f"{name}.md.j2").render(self._context, comparisons=comparisons)


def _context(project: Project, status: Status) -> dict[str, object]:
    # Devices that ran only other frameworks have empty tables, which are left out.
    device_tables = {
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
        # The environments with an additional package, such as Horovod, have their own tables.
        "beside": {package: tables.measured_table(status, CPU, package) for package in _packages(status)},
        "devices": {device: table for device, table in device_tables.items() if table.environments},
        "audits": audit_tables.AuditTables(status),
        "batches": batch_invariance.tables(project),
        "exit_codes": EXIT_CODES,
        "provenance": provenance(project),
        "recipes": recipes.RECIPES,
        "newest": remaining_sources.newest(status.matrix),
        "patches": [(patch, tables.patch_version_ranges(status.matrix, patch)) for patch in recipes.PATCHES.values()],
    }


def _packages(status: Status) -> list[str]:
    return sorted({environment.package for environment in status.matrix.environments.values() if environment.package})


def _group(status: Status, group: SourceGroup) -> list[str]:
    ordered = [(source.order, key) for key, source in status.matrix.sources.items() if source.group == group]
    return [key for _, key in sorted(ordered)]


def provenance(project: Project) -> dict[str, object]:
    """Return the number of records and a fingerprint of all data, which changes with any record or claim."""
    digest = hashlib.sha256()
    records = 0
    signatures = folder_of(project.evidence)
    files_read = [*walk_files(project.matrix, "*.toml"), *list_entries(project.evidence, "*/*.jsonl")]
    files_read += [*list_entries(signatures, f"*/*{SUFFIX}"), *list_entries(project.audits, "*.json")]
    files_read += [
        *list_entries(project.matrix / "ops", "*/*.json"),
        *list_entries(project.matrix / "alerts", "*.json"),
    ]
    files_read += list_entries(folder(project), "*/*.jsonl")
    for path in sorted(files_read):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(project.matrix)}\n{len(content)}\n".encode() + content)
        is_evidence = path.is_relative_to(project.evidence) and path.suffix == ".jsonl"
        records += content.count(b"\n") if is_evidence and not path.name.endswith(SUFFIX) else 0
    return {"records": records, "fingerprint": digest.hexdigest()[:16]}
