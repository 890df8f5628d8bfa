"""Characters of untrusted input that hide or reorder text or control the terminal are escaped in all output."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable

import pytest
from rich.text import Text
from typer.testing import CliRunner

from tfdet.base import console
from tfdet.base.paths import Project
from tfdet.base.sanitize import escape_hidden, escape_json, escape_line
from tfdet.cli.main import app
from tfdet.engines import locate
from tfdet.publish import locate_page, terminal_lists
from tfdeterminism.trace.untrusted import sanitize_line as shown_by_diff

# Right-to-left override, isolate, zero-width space, joiner, soft hyphen, BOM, tag, separators, filler, selector, other.
HIDDEN = "\u202e\u2066\u200b\u200d\xad\ufeff\U000e0041\u2028\u2029\u3164\ufe0f\ue000"
NASTY = f"safe{HIDDEN}gnp.exe"


def is_clean(text: str) -> bool:
    """Return whether the text has no control, format, private or unassigned character except newline and tab."""
    bad = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    return not [c for c in text if (unicodedata.category(c) in bad and c not in "\n\t") or c in HIDDEN]


@pytest.mark.no_cover  # a million calls
def test_every_hidden_character_is_shown_and_no_other_changed() -> None:
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        escaped = escape_hidden(character)
        if escaped != character:
            assert escaped.isascii() and int(escaped[2:], 16) == number
        assert is_clean(escaped), hex(number)
    for text in ("plain", "two\nlines\tand a tab", "Grüße, 日本語, ✓ ≈ × – …", "e\u0301", "a\xa0b"):
        assert escape_hidden(text) == text


def test_escaped_json_decodes_to_the_same_value() -> None:
    value = {"text": NASTY, "more": ["ü", "\ud800", "\x7f"]}
    text = escape_json(json.dumps(value, ensure_ascii=False))
    assert is_clean(text)
    assert json.loads(text) == value


def test_the_console_writes_nothing_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    table = terminal_lists.FactTable("one")
    table.add(NASTY)
    console.out().print(table)
    console.out().print(Text(NASTY))
    console.print_note(NASTY)
    printed = "".join(capsys.readouterr())
    assert printed.count("\\u202e") == 3 and is_clean(printed)


def test_a_table_is_as_wide_as_its_escaped_text(capsys: pytest.CaptureFixture[str]) -> None:
    table = terminal_lists.FactTable("one", "two")
    table.add(NASTY * 3, "word")
    console.out().print(table)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= console.out().width
    assert lines[1].endswith("  word")


@pytest.mark.parametrize("command", [["show", "tf2.0", "bias-add-backprop"], ["status"], ["status", "--json"]])
def test_hidden_characters_of_a_record_are_escaped(
    copy: Project, record_line: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    error = {"kind": "raises", "type": NASTY, "message": NASTY, "where": NASTY, "output": NASTY}
    path = copy.evidence / "cpu" / "tf2.0.jsonl"
    path.write_bytes(record_line("raises", error=error))
    monkeypatch.setenv("TFDET_ROOT", str(copy.root))
    done = CliRunner().invoke(app, command)
    assert done.stdout and is_clean(done.stdout)
    assert "\\u202e" in done.stdout or command[0] == "status"


def test_hidden_characters_of_a_trace_are_escaped() -> None:
    page = locate_page.html(
        locate.LocateResult.model_construct(result="same", first_step=None, culprits=[], verdict=NASTY)
    )
    assert "\\u202e" in page and is_clean(page)
    assert is_clean(console.sanitize_text(NASTY))
    # `diff` puts "?" for all but the filler and the selector, which Unicode calls a letter and a mark.
    assert shown_by_diff(f"{NASTY}\x1b[2J\t.") == "safe" + "?" * 9 + HIDDEN[9:11] + "?gnp.exe?[2J\t."


def test_escape_line_escapes_newlines_and_shortens() -> None:
    assert escape_line("a\nb\tc\x1b[2J\u202ed") == "a\\x0ab\\x09c\\x1b[2J\\u202ed"
    assert len(escape_line("x" * 10_000)) < 250
