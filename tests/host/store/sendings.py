"""What somebody may send: a file of several records with envelopes, and what is changed in them on the way."""

from __future__ import annotations

import base64
import copy as copies
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from record_mutants import RAW, TEXTS, leaves, mutant, other
from records import with_checksum
from signers import Signer

from tfdet.base.paths import Project
from tfdet.store.dsse import PAYLOAD_TYPE, pae
from tfdet.store.records import parse
from tfdet_common import journal

Content = dict[str, Any]


@dataclass
class Sending:
    """The lines of a file and of the bundle beside it."""

    lines: list[bytes]
    envelopes: list[bytes]


@dataclass(frozen=True)
class World:
    """Where sendings come from.

    genuine: records of several devices and environments.  signers: by name; a thief, of whom no file tells, too.
    replayed: envelopes of other records.
    """

    project: Project
    genuine: Sequence[Content]
    signers: Mapping[str, Signer]
    replayed: Sequence[bytes]

    def sent(self, rng: random.Random) -> Sending:
        """Return records that somebody signed, with what was changed before, in the file, or in the envelopes."""
        place = _place_of(rng.choice(self.genuine))
        pool = [record for record in self.genuine if _place_of(record) == place]
        records = rng.sample(pool, min(len(pool), rng.choice([1, 2, 3, 5, 8])))
        if rng.random() < 0.1:
            records += rng.sample(list(self.genuine), 2)
        sending = Sending([line_of(record) for record in records], [])
        # What is changed: lines before they are signed, the file of lines afterwards, or the envelopes.
        what = rng.choice(["nothing", "before", "file", "envelopes", "envelopes", "envelopes", "both"])
        if what in ("before", "both"):
            self.change_lines(rng, sending.lines)
        for _ in range(rng.choice([0, 1, 1, 1, 1, 2])):
            sending.envelopes += self.sign(self._signer_of(rng, place[0]), sending.lines)
        if what in ("file", "both"):
            rng.choice([self.change_lines, self.change_file, self.change_file])(rng, sending.lines)
        if what in ("envelopes", "both"):
            for _ in range(rng.choice([1, 1, 2])):
                self.change_envelopes(rng, sending)
        return sending

    def _signer_of(self, rng: random.Random, device: str) -> Signer:
        """Return mostly the one who is trusted for a device."""
        return self.signers[device.split("-")[0]] if rng.random() < 0.8 else rng.choice(list(self.signers.values()))

    def sign(self, signer: Signer, lines: Sequence[bytes]) -> list[bytes]:
        """Return the signer's envelopes of these lines, without those that are no records."""
        return [envelope.encode("ascii") for envelope in signer.sign(self.project, _records(lines))]

    def change_lines(self, rng: random.Random, lines: list[bytes]) -> None:
        """Change one line, with a fitting checksum or the one that it had."""
        if not lines:
            return
        number = rng.randrange(len(lines))
        try:
            content = json.loads(lines[number])
            lines[number] = mutant(rng, [content]) if isinstance(content, dict) else lines[number]
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            lines.append(line_of(rng.choice(self.genuine)))

    def change_file(self, rng: random.Random, lines: list[bytes]) -> None:
        rng.choice(_FILE_CHANGES)(rng, lines)

    def change_envelopes(self, rng: random.Random, sending: Sending) -> None:
        if rng.random() < 0.1 or not sending.envelopes:
            sending.envelopes.append(rng.choice(self.replayed))
            return
        if rng.random() < 0.2:
            self.change_file(rng, sending.envelopes)
            return
        number = rng.randrange(len(sending.envelopes))
        try:
            content = json.loads(sending.envelopes[number])
            sending.envelopes[number] = rng.choice([self._change_outside, self._change_statement])(rng, content)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            sending.envelopes.append(rng.choice(self.replayed))

    def _change_outside(self, rng: random.Random, envelope: Content) -> bytes:
        """Change a signature, a hint or another field of the envelope itself."""
        signatures, signer = envelope["signatures"], self._signer_of(rng, rng.choice(["cpu", "vgpu", "nvidia"]))
        message = pae(envelope["payloadType"], base64.b64decode(envelope["payload"]))
        own = {"keyid": signer.id, "sig": base64.b64encode(signer.key.sign(message)).decode()}
        how = rng.randrange(6)
        if how == 0:
            signatures.insert(rng.randrange(len(signatures) + 1), own)
        elif how == 1:
            signatures[0]["keyid"] = rng.choice([signer.id, "", None, "x" * 999, "\x1b[2J"])
        elif how == 2:
            signatures[:0] = [own] * rng.choice([1, 7, 9])
        elif how == 3:
            signatures[0]["sig"] = own["sig"]
        else:
            _change_leaf(rng, envelope)
        return _dump(rng, envelope)

    def _change_statement(self, rng: random.Random, envelope: Content) -> bytes:
        """Change what was signed; mostly somebody signs it again."""
        statement = json.loads(base64.b64decode(envelope["payload"]))
        (notes,) = (subject["annotations"] for subject in statement["subject"] if subject["name"] == "records")
        device = str(notes["device"])
        rng.choice([*_STATEMENT_CHANGES, lambda *_: _change_leaf(rng, statement)])(rng, statement, notes)
        body = _dump(rng, statement).strip()
        envelope["payload"] = base64.b64encode(body).decode()
        if rng.random() < 0.8:
            signer = self._signer_of(rng, device)
            sig = base64.b64encode(signer.key.sign(pae(PAYLOAD_TYPE, body))).decode()
            envelope["signatures"] = [{"keyid": signer.id, "sig": sig}]
        return json.dumps(envelope).encode("ascii") + b"\n"


def line_of(content: Content) -> bytes:
    return (journal.dump(content) + "\n").encode("ascii")


def _place_of(content: Content) -> tuple[str, str]:
    return content["device"]["model"], content["environment"]


def _records(lines: Sequence[bytes]) -> Iterator[Any]:
    for line in lines:
        try:
            yield parse(line)
        except ValueError:
            continue


def _change_leaf(rng: random.Random, content: Content) -> None:
    *path, key = rng.choice(leaves(content))
    into: Any = content
    for part in path:
        into = into[part]
    how = rng.random()
    if how < 0.15:
        del into[key]
    elif how < 0.3:
        into[key] = f"@{rng.randrange(len(RAW))}@"
    elif how < 0.5:
        into[key] = rng.choice(TEXTS)
    elif how < 0.6 and isinstance(into, dict):
        into[rng.choice(["zz", "", "passedTests", "name", "annotations", "digest"])] = copies.deepcopy(into[key])
    elif how < 0.7 and isinstance(into, list):
        into.append(copies.deepcopy(into[key]))
    else:
        into[key] = other(rng, into[key])


def _dump(rng: random.Random, content: Content) -> bytes:
    """Return JSON with the marks of `_change_leaf` replaced, sometimes with a field twice."""
    text = json.dumps(content)
    for number, token in enumerate(RAW):
        text = text.replace(f'"@{number}@"', token)
    if rng.random() < 0.05 and content:
        name = json.dumps(rng.choice(list(content)))
        text = f"{{{name}: 0, {text[1:]}"
    return text.encode("ascii") + b"\n"


# Changes of a statement and of its batch, after which each is still well-formed; notes: the annotations of its subject
# "records", which name their device, environment and checksums.


def _reorder(rng: random.Random, statement: Content, notes: Content) -> None:
    notes["checksums"].reverse()


def _name_more(rng: random.Random, statement: Content, notes: Content) -> None:
    notes["checksums"].append(rng.choice([notes["checksums"][0], "0" * 64]))


def _name_less(rng: random.Random, statement: Content, notes: Content) -> None:
    notes["checksums"].pop()


def _state_other_digest(rng: random.Random, statement: Content, notes: Content) -> None:
    rng.choice(statement["subject"])["digest"]["sha256"] = rng.choice(["d" * 64, *notes["checksums"]])


def _state_other_result(rng: random.Random, statement: Content, notes: Content) -> None:
    statement["predicate"]["result"] = rng.choice(["PASSED", "WARNED", "FAILED"])


def _state_other_place(rng: random.Random, statement: Content, notes: Content) -> None:
    notes.update(rng.choice([{"environment": "tf2.8"}, {"device": "cpu"}, {"device": "nvidia-h200"}]))


def _state_tests(rng: random.Random, statement: Content, notes: Content) -> None:
    statement["predicate"][rng.choice(["passedTests", "warnedTests", "failedTests"])] = ["all of them"]


def _change_subjects(rng: random.Random, statement: Content, notes: Content) -> None:
    subjects = statement["subject"]
    if rng.random() < 0.5:
        subjects.remove(rng.choice(subjects))
    else:
        name = rng.choice(["records", "suite", "lock", "image", "bundle", "model"])
        subjects.append({"name": name, "digest": {"sha256": "e" * 64}})


_STATEMENT_CHANGES: list[Callable[[random.Random, Content, Content], None]] = [
    _reorder, _name_more, _name_less, _state_other_digest, _state_other_result, _state_other_place, _state_tests,
    _change_subjects,
]  # fmt: skip

# Changes of a file as such: of records or of envelopes.


def _shuffle(rng: random.Random, lines: list[bytes]) -> None:
    rng.shuffle(lines)


def _repeat(rng: random.Random, lines: list[bytes]) -> None:
    lines += [rng.choice(lines)] * rng.choice([1, 2, 50]) if lines else [b"\n"]


def _drop(rng: random.Random, lines: list[bytes]) -> None:
    del lines[: rng.choice([1, 2])]


def _insert(rng: random.Random, lines: list[bytes]) -> None:
    garbage = [b"\n", b" \n", b"{}\n", b"null\n", b"[]\n", b"\xff\xfe\n", b"\0\n", b'"x"\n', b"{" * 5000 + b"\n",
               b"x" * 5_000_000 + b"\n", b"\r\n", b"\xef\xbb\xbf\n", b"\x0c\n", b"\xc2\x85\n"]  # fmt: skip
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(garbage))


def _end_otherwise(rng: random.Random, lines: list[bytes]) -> None:
    """End one line, or all, in another way."""
    chosen = range(len(lines)) if rng.random() < 0.5 else [rng.randrange(len(lines))] if lines else []
    end = rng.choice([b"", b"\r\n", b" \n", b"\n\n", b"\r", b"\0\n", b"\x0b\n", b"\xc2\xa0\n"])
    for number in chosen:
        lines[number] = lines[number].removesuffix(b"\n") + end
        if rng.random() < 0.7:
            lines[number] = with_checksum(lines[number])


def _begin_otherwise(rng: random.Random, lines: list[bytes]) -> None:
    if lines:
        lines[0] = rng.choice([b" ", b"\xef\xbb\xbf", b"\n", b"\xff\xfe", b"[", b"\0"]) + lines[0]


def _cut(rng: random.Random, lines: list[bytes]) -> None:
    if lines:
        lines[-1] = lines[-1][: rng.randrange(len(lines[-1]))]


def _replace_byte(rng: random.Random, lines: list[bytes]) -> None:
    if lines and lines[-1]:
        number = rng.randrange(len(lines))
        changed = bytearray(lines[number] or b"x")
        changed[rng.randrange(len(changed))] = rng.choice(b'0aA ,:"{}[]\\\n\x00\xff+/=')
        lines[number] = bytes(changed)


_FILE_CHANGES: list[Callable[[random.Random, list[bytes]], None]] = [
    _shuffle, _repeat, _drop, _insert, _end_otherwise, _begin_otherwise, _cut, _replace_byte,
]  # fmt: skip
