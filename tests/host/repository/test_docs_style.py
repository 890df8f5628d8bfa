"""The docs follow the rules of style: one purpose for each page, short pages, short sentences, headings, words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
OUTSIDE = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "matrix/README.md")]
PURPOSES = {"tutorial", "how-to", "reference", "explanation"}
MAX_LINES = 200
MAX_CHANGES = 25  # of one release
MAX_HEADING = 60  # characters
MAX_MEAN_SENTENCE, MAX_SENTENCE = 25, 40  # words
GENERATED = re.compile(r"<!-- (?:tfdet:begin|\w+: written).*?<!-- (?:tfdet:end|end of).*?-->", re.S)
# Words that the glossary replaced, and turns of phrase that hide who does what.
BANNED = {
    r"\bnobody\b|\bsomebody\b|\bwhoever\b": "name the subject: the user, the program, a file, a tool",
    r"\bby (?:itself|themselves)\b": "say what does not take part",
    r"\bas it stands\b|\bthere is none\b": "say what is there",
    r"\bis no [a-z]+\b(?<!is no longer)": "X is not a Y",
    r"\bdoes not go with\b": "cannot be combined with",
    r"\bstand-ins?\b|\bstood in for\b|\bstands in for\b": "CPU fallback",
    r"\brelaunch(?:es)?\b": "process",
    r"\bstrangers?\b": "untrusted input",
    r"\brooms?\b": "layer",
    r"\btaken in\b|\btakes? (?:records|them|it) in\b|\btake in\b": "add, ingest",
    r"\bmisfits?\b": "inconsistent record",
    r"\bset aside\b": "not counted",
    r"\bbelieved?\b|\bbelieves\b": "trusted",
    r"\bvouch(?:es)?\b": "sign, attest",
    r"\b(?:initialis|minimis|normalis|quantis|serialis|optimis)\w*": "American spelling: -iz-",
    r"\bmended?\b|\bmends\b": "fix, make deterministic",
}


def pages() -> list[Path]:
    """Return all pages, without the reports that one template generates."""
    return sorted(path for path in DOCS.rglob("*.md") if "upstream" not in path.parts)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def handwritten(path: Path) -> str:
    """Return the hand-written part of a page."""
    return GENERATED.sub("", path.read_text("utf-8"))


def tokens(path: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(handwritten(path))


def text_of(inline: Token) -> str:
    """Return the text of a token: a code span counts as one word, a link as its text."""
    parts = {"code_inline": "CODE", "softbreak": " ", "html_inline": ""}
    return "".join(parts.get(child.type, child.content) for child in inline.children or [])


def inlines(path: Path, *kinds: str) -> list[str]:
    """Return the texts directly inside elements of these kinds."""
    all_tokens = tokens(path)
    return [text_of(all_tokens[index + 1]) for index, token in enumerate(all_tokens) if token.type in kinds]


def sentences(path: Path) -> list[str]:
    paragraphs = inlines(path, "paragraph_open")
    return [
        sentence
        for text in paragraphs
        for sentence in re.split(r"(?<=[.?!:;])\s+(?=[A-Z`\"*\d(])", text)
        if sentence.strip()
    ]


@pytest.mark.parametrize("path", pages(), ids=name)
def test_a_page_follows_every_rule(path: Path) -> None:
    faults = [*faults_of_shape(path), *faults_of_headings(path), *faults_of_sentences(path), *faults_of_words(path)]
    assert faults == []


@pytest.mark.parametrize("path", OUTSIDE, ids=name)
def test_a_page_outside_of_docs_follows_the_rules_of_sentences_and_words(path: Path) -> None:
    assert [*faults_of_headings(path), *faults_of_sentences(path), *faults_of_words(path)] == []


def faults_of_shape(path: Path) -> list[str]:
    faults = []
    lines = path.read_text("utf-8").count("\n")
    if lines > MAX_LINES and not GENERATED.search(path.read_text("utf-8")):
        faults.append(f"{lines} lines, at most {MAX_LINES}")
    folder = path.relative_to(DOCS).parts[0]
    if path != DOCS / "index.md" and folder not in PURPOSES:
        faults.append(f"its folder is not one of {', '.join(sorted(PURPOSES))}")
    kinds = [token.type for token in tokens(path) if token.type.endswith("_open") and token.level == 0]
    if kinds[:2] != ["heading_open", "paragraph_open"]:
        faults.append("begins otherwise than with its title and a paragraph that says what it is for")
    return faults


def faults_of_headings(path: Path) -> list[str]:
    all_tokens = tokens(path)
    headings = [all_tokens[index + 1].content for index, token in enumerate(all_tokens) if token.type == "heading_open"]
    faults = [
        f"heading of more than {MAX_HEADING} characters: {heading}"
        for heading in headings
        if len(heading) > MAX_HEADING
    ]
    faults += [
        f"heading with a full stop or a question: {heading}"
        for heading in headings
        if heading.endswith((".", "?", "!"))
    ]
    return faults + [f"heading twice: {heading}" for heading in set(headings) if headings.count(heading) > 1]


def faults_of_sentences(path: Path) -> list[str]:
    texts = sentences(path)
    counts = [len(sentence.split()) for sentence in texts]
    faults = [
        f"sentence of {count} words: {sentence}"
        for sentence, count in zip(texts, counts, strict=True)
        if count > MAX_SENTENCE
    ]
    if counts and sum(counts) / len(counts) > MAX_MEAN_SENTENCE:
        faults.append(f"{sum(counts) / len(counts):.0f} words a sentence, at most {MAX_MEAN_SENTENCE}")
    faults += [
        f"begins with {sentence.split()[0]}: {sentence}"
        for sentence in texts
        if re.match(r"Of |What (?!to )", sentence)
    ]
    return faults


def faults_of_words(path: Path) -> list[str]:
    text = " ".join(inlines(path, "paragraph_open", "heading_open", "td_open", "th_open"))
    return [f"{match[0]!r}: {advice}" for words, advice in BANNED.items() for match in re.finditer(words, text, re.I)]


def test_a_release_has_few_changes() -> None:
    releases = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.M)[1:]
    assert releases
    for release in releases:
        assert len(re.findall(r"^- ", release, re.M)) <= MAX_CHANGES, release.partition("\n")[0]


def test_every_page_can_be_reached_from_the_index() -> None:
    linked: set[Path] = set()
    waiting = [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in linked or not page.is_relative_to(DOCS):
            continue
        linked.add(page)
        targets = re.findall(r"\]\(([^)#:]+\.md)", page.read_text("utf-8"))
        waiting += [(page.parent / target).resolve() for target in targets]
    assert set(DOCS.rglob("*.md")) <= linked
