"""Build the site into one folder, completely or not at all; the same data gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

from tfdet.base.errors import UsageError
from tfdet.base.folder_swap import replace_folder
from tfdet.base.folders import is_there
from tfdet.base.parallel import parallel_map, should_read_in_processes
from tfdet.base.paths import Project
from tfdet.base.untrusted import resolve
from tfdet.publish.render import provenance
from tfdet.site import (
    badges,
    batch_invariance,
    builds,
    cells,
    docs,
    environments,
    feed,
    framework_lists,
    home_page,
    plots_page,
    prose,
    solutions,
    sources,
    table,
)
from tfdet.site.history import History, VerdictChange, sort_changes
from tfdet.site.page import Page, Writer, data_script
from tfdet.site.site_facts import SiteFacts
from tfdet.store.cases import current_hashes
from tfdet.store.evidence import EvidenceStore
from tfdet.store.records import read_records
from tfdeterminism.version import __version__

_MARKER = "site.json"  # a folder with this file is a site, which may be replaced


@dataclass(frozen=True)
class BuiltSite:
    """A built site.  pages: the number of HTML pages."""

    folder: Path
    pages: int


def build(project: Project, out: Path, url: str = "", repository: str = "") -> BuiltSite:
    """Build the site of a project into the folder `out`.

    url: where the site will be published; only the feed, the sitemap and metadata contain it.
    repository: URL of the repository, for links to its files.
    """
    out = resolve(out)
    _check_target(out)
    with replace_folder(out) as temporary_folder:
        facts = SiteFacts.from_project(project)
        evidence = _Evidence.from_project(project, facts)
        writer = Writer(temporary_folder, {**_site(project, evidence), "url": url, "repository": repository})
        documents = docs.documents(project.root)
        changes = _write(facts, evidence, writer)
        for page in docs.pages(documents, repository):
            writer.write(page)
        _assets(facts, writer, changes, documents)
        pages = sum(1 for _ in temporary_folder.rglob("*.html"))
    return BuiltSite(out, pages)


def _check_target(out: Path) -> None:
    if is_there(out) and not out.is_dir():
        raise UsageError(f"{out} is not a folder", "Name a new folder, or one with an older site.")
    if out.is_dir() and any(out.iterdir()) and not (out / _MARKER).is_file():
        raise UsageError(f"{out} is not empty and not a tfdet site", "Name a new folder, or one with an older site.")


@dataclass(frozen=True)
class _Evidence:
    """The store's files of records.

    by_environment: the files of each environment.  hashes: {source: the `case_hash` of each case that the suite has};
    other records are stale.
    """

    by_environment: dict[str, list[Path]]
    hashes: dict[str, set[str]]

    @classmethod
    def from_project(cls, project: Project, facts: SiteFacts) -> _Evidence:
        by_environment: dict[str, list[Path]] = {key: [] for key in facts.matrix.environments}
        for path in EvidenceStore.open(project).files():
            by_environment.get(path.stem, []).append(path)
        return cls(by_environment, current_hashes(project))

    def newest(self) -> str:
        """Return the date of the newest record."""
        days = [_newest(path) for paths in self.by_environment.values() for path in paths]
        return max(days, default="never")


def _newest(path: Path) -> str:
    """Return the date of the newest record of one file, by a text search, which is faster than parsing."""
    field = b'"started":"'
    with path.open("rb") as file:
        return max((line[start : start + 10].decode("ascii", "replace") for line in file
                    if (start := line.rfind(field) + len(field)) >= len(field)), default="never")  # fmt: skip


def _site(project: Project, evidence: _Evidence) -> dict[str, Any]:
    return {**provenance(project), "newest": evidence.newest(), "tfdet": __version__}


def _write(facts: SiteFacts, evidence: _Evidence, writer: Writer) -> list[VerdictChange]:
    """Write all pages; return the changes of verdicts, the newest first."""
    work = _Work(facts, evidence, writer)
    keys = list(facts.matrix.environments)
    _ = facts.cells_by_page, facts.costs  # compute them once, before worker processes are forked
    use_processes = should_read_in_processes(chain.from_iterable(evidence.by_environment.values()))
    results = list(parallel_map(work.environment, keys, use_processes=use_processes))
    changes = sort_changes(change for environment_changes, _ in results for change in environment_changes)
    ulps = plots_page.UlpHistogram.merge([histogram for _, histogram in results])
    for page in _pages(facts, changes, ulps):
        writer.write(page)
    return changes


@dataclass(frozen=True)
class _Work:
    """Writes the pages of one environment, in a worker process."""

    facts: SiteFacts
    evidence: _Evidence
    writer: Writer

    def environment(self, key: str) -> tuple[list[VerdictChange], plots_page.UlpHistogram]:
        """Write the pages of an environment; return its changes of verdicts, and its differences in ulps.

        Its records are only in memory during this call.
        """
        # The shipped and the user's files may contain the same record, which counts once.
        by_checksum = {
            record.checksum: record for path in self.evidence.by_environment[key] for record in read_records(path)
        }
        records = [record for record in by_checksum.values() if self.facts.is_counted(record)]
        for page in cells.pages(self.facts, key, records):
            self.writer.write(page)
        return History(self.evidence.hashes).changes(records), plots_page.UlpHistogram.from_records(records)


def _pages(facts: SiteFacts, changes: list[VerdictChange], ulps: plots_page.UlpHistogram) -> Iterator[Page]:
    yield home_page.page(facts, changes)
    yield table.page(facts)
    yield from sources.pages(facts, ulps)
    yield from environments.pages(facts)
    yield from solutions.pages(facts)
    yield from builds.pages(facts)
    yield from framework_lists.pages(facts)
    yield batch_invariance.page(facts)
    yield from prose.pages(facts)
    yield plots_page.page(facts, ulps)


def _assets(facts: SiteFacts, writer: Writer, changes: list[VerdictChange], documents: list[docs.Document]) -> None:
    url = writer.site["url"]
    folder = files("tfdet.site") / "static"
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_file():
            writer.text(f"static/{item.name}", item.read_text("utf-8"))
    for item in sorted((folder / "tabulator").iterdir(), key=lambda item: item.name):
        writer.text(f"static/tabulator/{item.name}", item.read_text("utf-8"))
    writer.text("static/search-data.js", data_script("tfdetSearch", home_page.search_data(facts, documents)))
    for name, text in (*table.data(facts), *badges.files(facts), *feed.files(changes, url)):
        writer.text(name, text)
    if url:
        writer.text("sitemap.xml", feed.sitemap(writer.folder, url))
    writer.text(_MARKER, json.dumps({"format": "tfdet-site", **writer.site}, indent=1, sort_keys=True) + "\n")
    writer.text(".nojekyll", "")
