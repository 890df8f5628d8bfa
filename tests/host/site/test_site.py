"""The site: every page is valid, linked, harmless and has a JSON file; equal data give equal bytes."""

from __future__ import annotations

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import html5lib
import pytest
import weekly
from records import make_record
from signers import H100
from site_builder import ENVIRONMENTS, OPS, PageParser, pages, small_project

from tfdet.base import parallel
from tfdet.base.errors import UsageError
from tfdet.base.paths import Project
from tfdet.publish import batch_invariance
from tfdet.publish.op_comparison import compare_ops
from tfdet.site import environments, wording
from tfdet.site import page as site_page
from tfdet.site.build import build
from tfdet.site.page import VERSION, Writer
from tfdet.site.site_facts import SiteFacts
from tfdet.store.cases import current_cases
from tfdet.store.evidence import EvidenceStore
from tfdet.store.records import parse
from tfdet.verdicts.status_loading import load_status
from tfdet_common import journal
from tfdet_common.variables import CALLER_VARIABLES

# Fixtures: `small`, a project with few pages of every kind, and `site`, the folder of its site.  OPS: an environment of
# PyTorch, for whose ops the site has lists of what documents and measurements say.
# What makes a site is covered where the fixtures make one; it would take three times as long in each test.
pytestmark = pytest.mark.no_cover
MAX_PAGE_BYTES = 500_000  # bytes of a page
KINDS = {"index", "table", "source", "sources", "environment", "environments", "solution", "solutions", "cell", "build",
         "builds", "change", "docs", "records", "lists", "list", "batches", "myths", "links", "prose",
         "numbers"}  # fmt: skip


def json_of(path: Path) -> dict[str, Any]:
    """Return the content of the JSON file beside a page."""
    content = json.loads(path.with_suffix(".json").read_text("utf-8"))
    assert isinstance(content, dict)
    return content


def test_every_page_has_a_json_file(site: Path) -> None:
    kinds = Counter(json_of(path)["kind"] for path in pages(site))
    assert set(kinds) == KINDS
    for path in pages(site):
        content = json_of(path)
        header = (content["format"], content["version"], content["page"])
        assert header == ("tfdet-site", VERSION, path.relative_to(site).as_posix())


def test_each_cell_source_environment_and_build_has_a_page(small: Project, site: Path) -> None:
    status = load_status(small)
    for cell in status.cells:
        page = site / "cells" / cell.key.environment / f"{cell.key.source}.html"
        assert page.is_file(), cell.key
    changes = {"tf2.0-to-tf2.1", "tf2.1-to-tf2.21"}
    (comparison,) = compare_ops(small.matrix, status, "torch")
    known = {cell.key.source for cell in status.cells} | {row.source for row in comparison.notable_rows}
    sources = [key for key, source in status.matrix.sources.items() if source.group != "op" or key in known]
    folders = {"sources": sources, "lists": [OPS], "environments": status.matrix.environments, "builds": status.audits}
    for folder, keys in folders.items():
        assert {path.stem for path in (site / folder).glob("*.html")} - changes == {*keys, "index"}


def test_every_record_stands_on_the_page_of_its_cell(small: Project, site: Path) -> None:
    counts: Counter[str] = Counter()
    for path in (site / "cells").rglob("*.json"):
        counts.update(record["checksum"] for record in json_of(path)["data"]["records"])
    store = EvidenceStore.open(small)
    records = [record for path in store.files() for record in store.read(path)]
    assert counts == Counter(record.checksum for record in records)
    for record in records[::50]:
        parts = json_of(site / "cells" / record.environment / f"{record.source}.html")["data"]["parts"]
        text = "".join((site / part).read_text("utf-8") for part in parts)
        assert f'id="r-{record.checksum[:16]}"' in text and record.machine in text
        assert all(digest in text for digest in record.digests)


def test_lists_of_an_op_are_on_its_pages(small: Project, site: Path) -> None:
    """Both pages show the disagreements and where the sources were read, and name no TensorFlow."""
    (comparison,) = compare_ops(small.matrix, load_status(small), "torch")
    data = json_of(site / "lists" / f"{OPS}.html")["data"]
    assert [row["source"] for row in data["rows"]] == [row.source for row in comparison.notable_rows]
    assert [(disagreement["source"], disagreement["text"]) for disagreement in data["disagreements"]] == [
        (disagreement.row.source, disagreement.text) for disagreement in comparison.disagreements
    ]
    op_page = json_of(site / "sources" / "torch-index-put.html")["data"]
    assert [(entry["environment"], entry["documentation"]) for entry in op_page["lists"]] == [
        (OPS, "deterministic (accumulate=False); deterministic (CPU, accumulate=True)")
    ]
    assert {case["name"] for case in op_page["cases"]} >= {"samples_forward", "samples_backward"}
    assert {cell["environment"] for row in op_page["strips"] for cell in row["cells"]} == {OPS}
    (location,) = (p for f in data["disagreements"] if f["op"] == "cummax" for p in f["places"] if ".cu:" in p["name"])
    assert location["address"].startswith("https://github.com/pytorch/pytorch/blob/v2.6.0/aten/src/ATen/native/cuda/")
    empty = json_of(site / "sources" / "torch-empty.html")["data"]["lists"]
    assert any("differs on a CPU" in disagreement["text"] for entry in empty for disagreement in entry["disagreements"])
    for name in ("lists", "sources", "environments", "cells"):
        for path in (site / name).rglob(f"{OPS if name != 'sources' else 'torch-*'}.html"):
            assert "TensorFlow" not in path.read_text("utf-8").replace("TensorFlow and PyTorch", ""), path


def test_batch_invariance_has_a_page(small: Project, site: Path) -> None:
    """It agrees with docs/reference/batch-invariance.md, and the control depends on its batch."""
    (table,) = json_of(site / "batches.html")["data"]["tables"]
    (known,) = batch_invariance.tables(small)
    assert [(row["op"], row["shape"], row["cells"]) for row in table["rows"]] == [
        (row.op, row.shape, row.cells) for row in known.rows
    ]
    assert table["counts"] == known.counts and all("from" in cell for row in table["controls"] for cell in row["cells"])
    text = (site / "batches.html").read_text("utf-8")
    assert f"{known.counts['depends']} depend on the batch" in text and known.title in text
    assert 'href="../batches.html"' in (site / "lists" / "index.html").read_text("utf-8")


def test_the_docs_are_on_the_site_and_in_its_search(small: Project, site: Path) -> None:
    text = (site / "static" / "search-data.js").read_text("utf-8")
    documents = json.loads(text.partition("=")[2].rstrip().removesuffix(";"))["documents"]
    assert len(documents) == len(list(small.root.glob("docs/**/*.md")))
    for address, title, headings in documents:
        page, words = PageParser(site / address), (site / address).read_text("utf-8")
        assert title == json_of(site / address)["title"] and "<h1" in words
        assert set(headings[1::2]) <= set(page.ids()), address
        assert "tfdet:begin" not in words and "&lt;sup" not in words, address
    assert any(
        "Revoke a key" in headings for address, _, headings in documents if address.endswith("sign-records.html")
    )
    assert 'href="docs/index.html"' in (site / "index.html").read_text("utf-8")


def test_every_link_leads_somewhere(site: Path) -> None:
    read = {path: PageParser(path) for path in pages(site)}
    ids = {path.resolve(): set(page.ids()) for path, page in read.items()}
    broken = []
    for path, page in read.items():
        for link in page.links():
            if re.match(r"[a-z]+:", link):
                assert link.startswith("https://"), link
                continue
            name, _, fragment = link.partition("#")
            target = (path.parent / urllib.parse.unquote(name)).resolve() if name else path.resolve()
            if not target.is_file() or (fragment and target.suffix == ".html" and fragment not in ids[target]):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_every_page_is_valid_and_requests_nothing_from_other_hosts(site: Path) -> None:
    parser = html5lib.HTMLParser(strict=True)
    for path in pages(site):
        parser.parse(path.read_text("utf-8"))  # raises at the first fault
        page = PageParser(path)
        doubled = [name for name, count in Counter(page.ids()).items() if count > 1]
        assert not doubled, (path, doubled)
        (policy,) = (a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
        assert policy and policy.startswith("default-src 'none'") and "unsafe" not in policy and ":" not in policy
        for tag, attributes in page.tags:
            assert "style" not in attributes and not any(name.startswith("on") for name in attributes), (path, tag)
            assert tag != "style" and (tag != "script" or attributes.get("src")), path
            if tag in ("script", "img", "link") and attributes.get("rel") != "canonical":
                assert not re.match(r"\w+:|//", str(attributes.get("src") or attributes.get("href"))), path


def test_no_page_is_too_large(site: Path) -> None:
    library = site / "static" / "tabulator"
    large = {p: p.stat().st_size for p in site.rglob("*") if p.is_file() and p.parent != library}
    assert not {path: size for path, size in large.items() if size > MAX_PAGE_BYTES}


@weekly.on_day(1)
def test_the_same_data_give_the_same_bytes(small: Project, site: Path, tmp_path: Path) -> None:
    """The second build has another process, hash seed, time zone and day."""
    environ = {**os.environ, "TFDET_ROOT": str(small.root), "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    command = [sys.executable, "-m", "tfdet", "site", "--out", str(tmp_path / "again")]
    subprocess.run(command, env=environ, check=True, capture_output=True)
    names = [path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()]
    second_files = [path for path in (tmp_path / "again").rglob("*") if path.is_file()]
    same, other, missing = filecmp.cmpfiles(site, tmp_path / "again", names, shallow=False)
    assert (other, missing, len(second_files)) == ([], [], len(same))


@weekly.on_day(5)
def test_several_processes_make_the_same_site(
    small: Project, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "MIN_BYTES_FOR_PROCESSES", 0)
    second_site = build(small, tmp_path / "again").folder
    names = [path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()]
    _, other, missing = filecmp.cmpfiles(site, second_site, names, shallow=False)
    assert (other, missing) == ([], [])


HOSTILE = "<script>alert(1)</script>\u202e\u2066\"'><img src=x onerror=alert(1)>&amp;\u200b"


def add_record(project: Project, **changes: Any) -> None:
    """Add a record of tf2.1, which has none."""
    line = journal.dump(make_record(environment="tf2.1", version="2.1.0", **changes)) + "\n"
    EvidenceStore.open(project).ingest([parse(line.encode())])


def test_untrusted_text_of_records_is_escaped(tmp_path: Path) -> None:
    project = small_project(tmp_path / "project")
    for path in EvidenceStore.open(project).files():
        path.unlink()
    stack = {**make_record()["stack"], "os": HOSTILE, "cpu": HOSTILE}
    error = {"kind": "raises", "type": HOSTILE, "message": HOSTILE, "where": HOSTILE, "output": HOSTILE}
    add_record(
        project, observation="raises", stack=stack, error=error, determinism_environment={CALLER_VARIABLES[0]: HOSTILE}
    )
    settings = {"TF_DETERMINISTIC_OPS": "1", CALLER_VARIABLES[0]: HOSTILE}
    places = [f"CPU:{number}" for number in range(64)]
    add_record(project, solution="TDO", stack=stack, ran_on=places, determinism_environment=settings)
    folder = build(project, tmp_path / "site").folder
    path = folder / "cells" / "tf2.1" / "bias-add-backprop.html"
    text = path.read_text("utf-8")
    assert "\\u202e" in text and "&lt;script&gt;alert(1)" in text
    assert "<script>alert" not in text and "<img src=x" not in text and len(text) < MAX_PAGE_BYTES
    html5lib.HTMLParser(strict=True).parse(text)
    records = [
        record for page in path.parent.glob("bias-add-backprop*.html") for record in json_of(page)["data"]["records"]
    ]
    assert sorted(len(record["ran_on"]) for record in records) == [0, 64]
    for path in folder.rglob("*"):
        if path.suffix in (".html", ".json", ".xml", ".js") and path.parent.name != "tabulator":
            assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b]", path.read_text("utf-8")), path


@weekly.on_day(5)
def test_a_forged_batch_changes_nothing_of_the_site(
    small: Project, site: Path, tmp_path: Path, record_line: Callable[..., bytes]
) -> None:
    """The batch is an unsigned record of a GPU.  Only the fingerprint and the number of records change."""
    project = small_project(tmp_path / "small")
    cases, source = current_cases(project).by_hash, json.loads(record_line())["source"]
    code, case, mode = next((c, *sorted(pairs or ())[0]) for (name, c), pairs in cases.items() if name == source)
    EvidenceStore.open(project).ingest([parse(record_line("differs", **H100, case_hash=code, case=case, mode=mode))])
    built = build(project, tmp_path / "site").folder
    names = {path.relative_to(built) for path in built.rglob("*") if path.is_file()}
    assert names == {path.relative_to(site) for path in site.rglob("*") if path.is_file()}
    generated_values = re.compile(r"[0-9a-f]{16}|[0-9,]+(</b>)? records|\"records\": [0-9]+")
    for name in names:
        before, after = ((folder / name).read_bytes().decode("utf-8", "replace") for folder in (site, built))
        assert generated_values.sub("", after) == generated_values.sub("", before), name


def test_long_lists_continue_on_further_pages(small: Project, tmp_path: Path) -> None:
    project = small_project(tmp_path / "project")
    for path in EvidenceStore.open(project).files():
        path.unlink()
    cases = [make_record(environment="tf2.1", version="2.1.0", case=f"case-{n}-eager") for n in range(600)]
    EvidenceStore.open(project).ingest([parse((journal.dump(case) + "\n").encode()) for case in cases])
    folder = build(project, tmp_path / "site").folder / "cells" / "tf2.1"
    parts = [folder / name for name in ("bias-add-backprop.html", "bias-add-backprop-2.html")]
    assert all(
        path.stat().st_size < MAX_PAGE_BYTES and path.with_suffix(".json").stat().st_size < MAX_PAGE_BYTES
        for path in parts
    )
    listed = [
        record["case"] for path in folder.glob("bias-add-backprop*.json") for record in json_of(path)["data"]["records"]
    ]
    assert len(listed) == 600 == len(set(listed))
    assert 'href="../../cells/tf2.1/bias-add-backprop-2.html"' in parts[0].read_text("utf-8")


def test_the_cells_of_an_environment_with_many_ops_go_on_further_pages(checkout: Project, tmp_path: Path) -> None:
    facts = SiteFacts.from_project(checkout)
    parts = [page for page in environments.pages(facts) if page.path.startswith(f"environments/{OPS}")]
    writer = Writer(tmp_path, {"fingerprint": "", "records": 0, "newest": "", "tfdet": "", "url": "", "repository": ""})
    for page in parts:
        writer.write(page)
        path = tmp_path / f"{page.path}.html"
        assert max(path.stat().st_size, path.with_suffix(".json").stat().st_size) < MAX_PAGE_BYTES
        links = set(PageParser(path).links())
        assert links >= {f"../{part.path}.html" for part in parts if part != page}
    listed = [row["source"] for page in parts for row in page.data["rows"]]
    assert len(parts) > 1 and listed == [source for source in facts.sources if (OPS, source) in facts.cells_by_page]


def test_a_packaged_record_that_was_added_again_is_shown_once(small: Project, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(small.evidence / "cpu", home / "evidence" / "cpu")
    folder = build(Project(small.root, user_data=home), tmp_path / "site").folder
    records = json_of(folder / "cells" / "tf2.21" / "bias-add-backprop.html")["data"]["records"]
    assert len(records) == len({record["checksum"] for record in records}) > 0


@weekly.on_day(2)
def test_only_an_older_site_is_replaced(
    small: Project, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="not a tfdet site"):
        build(small, other)
    with pytest.raises(UsageError, match="not a folder"):
        build(small, other / "thesis.txt")
    assert (other / "thesis.txt").read_text() == "years of work"
    old = tmp_path / "old"
    old.mkdir()
    for name in ("site.json", "gone.html"):
        (old / name).write_text("{}")
    build(small, old)
    assert not (old / "gone.html").exists() and (old / "index.html").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "old"]
    monkeypatch.chdir(old)
    build(small, Path("."))
    assert (old / "index.html").is_file()


def test_feed_badges_and_sitemap(small: Project, site: Path, tmp_path: Path) -> None:
    atom = "{http://www.w3.org/2005/Atom}"
    feed = ElementTree.parse(site / "feed.xml").getroot()
    assert feed.findtext(f"{atom}updated") and feed.findall(f"{atom}entry/{atom}summary")
    badge = json.loads((site / "badges" / "sources" / "bias-add-backprop.json").read_text("utf-8"))
    # ED and TDP are the keys of two solutions.
    assert badge == {"schemaVersion": 1, "label": "determinism: bias-add-backprop", "color": "yellow",
                     "message": "differs; ED or TDP helps"}  # fmt: skip
    assert (site / "badges" / "environments" / f"{ENVIRONMENTS[0]}.json").is_file()
    assert not (site / "sitemap.xml").exists()
    published = build(small, tmp_path / "published", "https://example.org/tfdet/").folder
    sitemap = ElementTree.parse(published / "sitemap.xml").getroot()
    listed = [element.text or "" for element in sitemap.iter() if element.tag.endswith("loc")]
    assert {name.removeprefix("https://example.org/tfdet/") for name in listed} == {
        path.relative_to(published).as_posix() for path in pages(published)
    }
    assert 'rel="canonical" href="https://example.org/tfdet/index.html"' in (published / "index.html").read_text(
        "utf-8"
    )


def test_a_long_text_is_shortened_on_the_page_but_not_in_json() -> None:
    text = str(site_page._finalize("x" * 1_000_000))
    assert len(text) < 5000 and "1,000,000 characters" in text


def test_prose_may_contain_only_code_emphasis_and_links() -> None:
    assert (
        wording.render_code("`a<b` *do not* Conv*D/Conv*D <i>")
        == "<code>a&lt;b</code> <em>do not</em> Conv*D/Conv*D &lt;i&gt;"
    )
    assert wording.render_code("one ` alone \u202e") == "one ` alone \\u202e"
    link = wording.link_citations('see https://github.com/a/b/pull/3, or javascript:alert(1) https://x.org/"onclick=y')
    assert '<a rel="nofollow noreferrer" href="https://github.com/a/b/pull/3">a/b#3</a>, or javascript:alert(1)' in link
    assert 'href="https://x.org/"' not in link or '"onclick' not in link.replace("&#34;onclick", "")
