"""Properties of signers' names: an accepted name is read back the same, and names that look alike are one name."""

from __future__ import annotations

import tomllib
import unicodedata

from hostile import fuzzed
from hypothesis import given
from hypothesis import strategies as st
from signers import Signer

from tfdet.cli.key import _key_toml
from tfdet.matrix.keys import MAX_NAME, Keyring, PublicKey, normalize_signer_name
from tfdet.matrix.lookalikes import _lookalikes, confusable_skeletons
from tfdet.store.signing_key import public_pem

PEMS = [public_pem(Signer(name).key) for name in "ab"]
HIDDEN = "\u00ad\u034f\u200b\u200d\u2060\u3164\u2800\ufe0f\ufeff\U000e0101\u115f"
# Letters of several scripts, blanks, marks, control characters, and what is shown as nothing.
CHARACTERS = st.sampled_from(["Lab", "l", "I", "1", "rn", "\u0430", "\u03bf", "\uff4c", "\u0301", " ", "\u00a0", "\t",
                              "\x00", "\x1b[31m", "\x7f", "\u2028", "\u202e", "\ud800", "\U0001f600", '"', "\\",
                              "\u0130", "\u00df", "\u1e9e", *HIDDEN])  # fmt: skip
NAMES = st.lists(CHARACTERS | st.characters(), max_size=8).map("".join)


def key(signer: str, number: int = 0) -> PublicKey:
    """Return a key as the file that `tfdet key show --signer` prints holds it; number: which of PEMS."""
    return PublicKey.model_validate(tomllib.loads(_key_toml(signer, PEMS[number], ["cpu"])))


def is_accepted(name: str) -> bool:
    try:
        normalize_signer_name(name)
    except ValueError:
        return False
    return True


@fuzzed
@given(name=NAMES)
def test_a_name_that_is_accepted_is_read_back_the_same(name: str) -> None:
    if is_accepted(name):
        shown = normalize_signer_name(name)
        assert normalize_signer_name(shown) == shown == key(shown).signer
        assert confusable_skeletons(shown)[0], "a name that is shown as nothing"
        assert len(shown) <= MAX_NAME
        assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in shown)


@st.composite
def lookalikes(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a name, and another one that is shown alike, or so nearly that a reader takes it for the same."""
    name = draw(NAMES.filter(is_accepted))
    parts = []
    for char in name:
        others = _lookalikes().get(char, []) if char.isalnum() else []
        parts.append(draw(st.sampled_from([char, char, *others])) + draw(st.sampled_from(["", "", "", *HIDDEN])))
    form = draw(st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
    return name, draw(st.sampled_from(["", " "])) + unicodedata.normalize(form, "".join(parts)) + " "


@fuzzed
@given(names=lookalikes())
def test_two_names_that_look_alike_are_never_two_signers(names: tuple[str, str]) -> None:
    if all(map(is_accepted, names)):
        keys = Keyring({str(number): key(normalize_signer_name(name), number) for number, name in enumerate(names)})
        # find_faults gets the kinds of devices, by name.
        signers = {known.signer for known in keys.by_name.values()}
        assert len(signers) == 1 or any("write one holder alike" in fault for fault in keys.find_faults({"cpu": 0}))


@fuzzed
@given(first=NAMES.filter(is_accepted), other=NAMES.filter(is_accepted))
def test_looking_alike_does_not_depend_on_the_order_of_keys(first: str, other: str) -> None:
    keys = {str(number): key(normalize_signer_name(name), number) for number, name in enumerate((first, other))}
    found = [bool(Keyring(dict(items)).find_faults({"cpu": 0})) for items in (keys.items(), reversed(keys.items()))]
    assert found[0] == found[1]
