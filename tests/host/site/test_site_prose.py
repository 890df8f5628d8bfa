"""The statements of the site's hand-written pages agree with cells, programs and links."""

from __future__ import annotations

import re
from collections import Counter

from tfdet.base.paths import Project
from tfdet.site import links, prose
from tfdet.verdicts.status import Status

# Of tensorflow/tensorflow: the documents of 2019 that this project began with list them.
ORIGINAL_ISSUES = {2652, 2732, 13932, 16889, 18096, 29101}
ORIGINAL_PULL_REQUESTS = {10636, 24273, 24747, 25269, 25796, 29667, 31389, 31465, 32979, 33483}


def test_cells_named_by_a_myth_have_the_verdict_it_states(status: Status) -> None:
    for myth in prose.myths():  # a myth of no framework is from the list in NVIDIA's talk of 2019
        assert myth.cells or myth.tests, myth.key
        for cell in myth.cells:
            assert str(status.cell(cell.key).inferred.verdict) == cell.verdict, cell
    assert len([myth for myth in prose.myths() if myth.framework is None]) == 5, "the talk's list"
    assert len({myth.key for myth in prose.myths()}) == len(prose.myths())


def test_each_program_named_by_a_myth_exists(checkout: Project) -> None:
    for myth in prose.myths():
        for test in myth.tests:
            assert test.name in (checkout.root / test.file).read_text("utf-8"), test


def test_the_catalogue_has_all_original_issues_and_pull_requests(checkout: Project) -> None:
    # link.seed: whether those documents of 2019 list it.
    numbers = Counter(
        (link.kind, int(match[1]))
        for link in links.catalogue()
        if link.seed and (match := re.search(r"tensorflow/tensorflow/(?:issues|pull)/(\d+)$", link.address))
    )
    expected = {("issue", number) for number in ORIGINAL_ISSUES} | {
        ("pull request", number) for number in ORIGINAL_PULL_REQUESTS
    }
    assert set(numbers) == expected and set(numbers.values()) == {1}


def test_each_catalogue_link_has_its_form_and_known_sources(status: Status) -> None:
    sources = status.matrix.sources
    addresses = Counter(link.address for link in links.catalogue())
    assert not [address for address, count in addresses.items() if count > 1]
    for link in links.catalogue():
        assert set(link.sources) <= set(sources), link
        assert ("/pull/" in link.address) == (link.kind == "pull request"), link
        assert ("/issues/" in link.address) == (link.kind == "issue"), link
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", links.load_catalogue().known_on)  # of the states of the links


def test_markup_in_prose_is_escaped() -> None:
    assert "<script>" not in prose.render_markdown("<script>alert(1)</script>\n\n[x](javascript:alert(1))")
    assert "javascript:" not in re.sub(r"\[x\]\(.*?\)", "", str(prose.render_markdown("[x](javascript:alert(1))")))
