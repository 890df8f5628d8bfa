"""Names of signers: in key files, on the command line, and where signers are counted."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from signers import Signer, run_tfdet

from tfdet.base.errors import DataError, ExitCode, UsageError
from tfdet.base.paths import Project
from tfdet.cli import key as command
from tfdet.matrix.keys import PublicKey, raw_public_key
from tfdet.matrix.load import load_file, load_matrix
from tfdet.store import signing_key


@pytest.fixture
def own_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create the signing key of this machine; return the path of its file."""
    monkeypatch.delenv("TFDET_KEY", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    signing_key.generate()
    return signing_key.path()


@pytest.mark.parametrize("name", ["Lab 😀", 'A "lab" \\ of ours', "Ärzte", "実験室", "'''", "Lab\t#1"])
def test_the_file_that_key_show_writes_holds_any_name(
    own_key: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    command.show(name, ["cpu", "cpu"])
    file = tmp_path / "lab.toml"
    file.write_text(capsys.readouterr().out, "utf-8")
    key = load_file(file, PublicKey)
    assert (key.signer, [scope.device for scope in key.trusted_for]) == (name.replace("\t", " "), ["cpu"])


@pytest.mark.parametrize("name", ["", "  ", "\u200b", "\u3164", "l" * 121, "lab\x7f", "lab\x1b[31m", "lab\udcff"])
def test_an_invalid_name_is_refused(own_key: Path, checkout: Project, name: str) -> None:
    with pytest.raises(UsageError, match="--signer"):
        command.show(name, None)
    assert run_tfdet(checkout, "key", "show", "--signer", name).returncode == ExitCode.USAGE


def test_an_unknown_kind_of_device_is_reported_with_the_nearest(own_key: Path) -> None:
    with pytest.raises(UsageError, match="no device kind is called 'nvidai'") as caught:
        command.show("lab", ["nvidai"])
    assert caught.value.advice == "Did you mean nvidia?"
    with pytest.raises(UsageError, match="--device requires --signer"):
        command.show(None, ["cpu"])


def test_an_empty_key_variable_means_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_key: Path) -> None:
    """For example, a CI secret that is not set."""
    monkeypatch.setenv("TFDET_KEY", "")
    assert signing_key.load() is not None
    own_key.unlink()
    assert signing_key.load() is None
    with pytest.raises(UsageError, match="this machine has no key"):
        signing_key.require()
    monkeypatch.setenv("TFDET_KEY", str(tmp_path / "nowhere.pem"))
    with pytest.raises(DataError, match="No such file"):
        signing_key.load()


@pytest.mark.parametrize(
    ("one", "other"), [("lab", "lab "), ("Example Lab", "  Example\u00a0 Lab"), ("Caf\u00e9", "Cafe\u0301")]
)
def test_names_that_differ_in_blanks_or_form_are_one_signer(copy: Project, one: str, other: str) -> None:
    Signer("a").trust_in(copy, holder=one)
    Signer("b").trust_in(copy, holder=other)
    keys = load_matrix(copy.matrix).keys.by_name
    assert keys["a"].signer == keys["b"].signer == one


LOOK_ALIKES = ["LAB", "\uff4cab", "la\u200bb", "l\u0430b", "1ab", "l\u0251b", "\u0406\u0430b"]
LOOK_ALIKES += ["\u0627ab", "\u05c0ab"]  # from right to left
LOOK_ALIKES += ["lab\ufe0f", "l\u034fab", "lab\U000e0101", "\u3164lab", "lab\u2800", "L\u0410\u0412"]
BLANK_VARIANTS = ["Example\u2800Lab", "Example\u3164Lab", "Example\u200bLab", "ExampleLab", "Exa mple Lab"]
# Points of the curve Ed25519, as a public key writes them.
KEYS_OF_SMALL_ORDER = [bytes(32), b"\1" + bytes(31), b"\1" + bytes(30) + b"\x80", b"\xec" + b"\xff" * 30 + b"\x7f"]


@pytest.mark.parametrize("other", LOOK_ALIKES)
def test_names_that_look_alike_are_refused(copy: Project, other: str) -> None:
    """Otherwise one person would count as two signers who agree."""
    Signer("a").trust_in(copy, holder="lab")
    Signer("b").trust_in(copy, holder=other)
    with pytest.raises(DataError, match=r"keys/b\.toml: signer: .* in keys/a\.toml: write one holder alike"):
        load_matrix(copy.matrix)


@pytest.mark.parametrize("other", BLANK_VARIANTS)
def test_characters_shown_as_blanks_make_no_other_signer(copy: Project, other: str) -> None:
    Signer("a").trust_in(copy, holder="Example Lab")
    Signer("b").trust_in(copy, holder=other)
    with pytest.raises(DataError, match=r"keys/b\.toml: signer: .* in keys/a\.toml: write one holder alike"):
        load_matrix(copy.matrix)


@pytest.mark.parametrize("name", [" ", "\\u007f", "\\u200b", "\\u202ebal", "lab\\u2067"])
def test_a_key_file_with_an_invalid_signer_name_is_refused(copy: Project, name: str) -> None:
    Signer("a").trust_in(copy, holder=name)
    with pytest.raises(DataError, match=r"keys/a\.toml:\d+: signer: "):
        load_matrix(copy.matrix)


@pytest.mark.parametrize("point", KEYS_OF_SMALL_ORDER)
def test_a_key_that_anybody_can_sign_for_is_refused(point: bytes) -> None:
    """The key is a point of small order: signatures for it need no private key."""
    der = base64.b64encode(bytes.fromhex("302a300506032b6570032100") + point).decode()
    with pytest.raises(ValueError, match="weak"):
        raw_public_key(f"-----BEGIN PUBLIC KEY-----\n{der}\n-----END PUBLIC KEY-----\n")
