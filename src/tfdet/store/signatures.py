"""The envelopes of the store, matrix/signatures/<device>/<environment>.intoto.jsonl, and what they say of its records.

A record is believed, unsigned, or set aside: signed by none but keys that are not believed of it, or not any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from tfdet.base.folders import in_folders, is_there
from tfdet.base.paths import Project
from tfdet.base.untrusted import read_text
from tfdet.matrix.keys import Keyring, PublicKey
from tfdet.matrix.load import Matrix
from tfdet.matrix.models import Environment
from tfdet.store import envelope, keyless, statement
from tfdet.store.lookup import Find, Index, Lines, nothing
from tfdet.store.records import Record

SUFFIX: Final = ".intoto.jsonl"  # spec/v1/bundle.md of in-toto
UNSIGNED: Final = ""
OTHER_LOCK: Final = "made of another lock than this repository's"


@dataclass(frozen=True)
class Vouch:
    """An envelope that some key of matrix/keys did sign.  refused: why that key is not believed of it, or nothing.

    other_lock: it is of a lock file that this repository does not have now; that may be an earlier one.
    """

    line: str
    name: str
    key: PublicKey
    batch: statement.Batch
    said: statement.Statement
    refused: str
    other_lock: bool = False

    @property
    def place(self) -> tuple[str, str]:
        return self.batch.device, self.batch.environment


@dataclass(frozen=True)
class Standing:
    """What the envelopes of one device and environment say of each record; faults: those that say nothing."""

    vouches: Sequence[Vouch] = ()
    faults: Sequence[str] = ()

    @cached_property
    def _places(self) -> Index:
        """Which of them names a record, and where."""
        return Index(
            (checksum, at << 32 | number)
            for number, vouch in enumerate(self.vouches)
            for at, checksum in enumerate(vouch.batch.checksums.packed)
        )

    def of(self, checksum: str, started: str) -> str | None:
        """Who vouches for a record: the first who is believed; UNSIGNED where nobody signed it, None: set aside."""
        if not (vouches := self._vouches(checksum)):
            return UNSIGNED
        vouch = _believed(vouches, started)
        return vouch.key.signer if vouch else None

    def names(self, checksum: str) -> bool:
        """Did somebody sign it, believed or not?"""
        return bool(self._vouches(checksum))

    def _vouches(self, checksum: str) -> tuple[Vouch, ...]:
        if not self.vouches:
            return ()
        named = bytes.fromhex(checksum)
        found = ((self.vouches[place & 0xFFFFFFFF], place >> 32) for place in self._places(named))
        return tuple(vouch for vouch, at in found if vouch.batch.checksums.packed_at(at) == named)

    def why(self, checksum: str, started: str) -> str:
        """The same in words."""
        if not (vouches := self._vouches(checksum)):
            return "unsigned"
        if believed := _believed(vouches, started):
            return f"signed by {believed.key.signer}{f', {OTHER_LOCK}' if believed.other_lock else ''}"
        vouch = vouches[0]
        return f"set aside: {vouch.name} is {vouch.refused or f'not believed of records of {started[:10]}'}"


def _believed(vouches: Iterable[Vouch], started: str) -> Vouch | None:
    return next((vouch for vouch in vouches if not vouch.refused and vouch.key.is_valid_at(started)), None)


@dataclass(frozen=True)
class Signatures:
    """folders: of the store, and of what its user added.  more: envelopes that lie beside files from elsewhere, and
    found: the lines of the records there, by their checksums.

    project: whose locks are known; None: nobody's.
    """

    keys: Keyring
    environments: Mapping[str, Environment]
    folders: Sequence[Path] = ()
    more: Sequence[str] = ()
    project: Project | None = None
    found: Find = nothing

    @classmethod
    def of(cls, project: Project, matrix: Matrix, more: Iterable[str] = (), found: Find = nothing) -> Signatures:
        folders = dict.fromkeys([folder_of(project.evidence), folder_of(project.own_evidence)])
        return cls(matrix.keys, matrix.environments, tuple(folders), tuple(more), project, found)

    def at(self, device: str, environment: str) -> Standing:
        """Each envelope of this place, compared with its records; of the store's some may have given way since."""
        found: list[Vouch] = []
        faults = []
        paths = [folder.with_name("evidence") / device / f"{environment}.jsonl" for folder in self.folders]
        with Lines(paths) as stored:
            for where, line in self._lines(device, environment):
                try:
                    found += self._here(line, (device, environment), where, stored)
                except ValueError as error:
                    faults += [f"{where}: {error}"] if where else []
        return Standing(found, faults)

    def _here(self, line: str, place: tuple[str, str], where: str, stored: Find) -> list[Vouch]:
        """Who vouches for records of this place; ValueError where nobody can be believed to have said this of them."""
        vouches = self.opened(line)
        first = vouches[0]
        if first.place != place:
            if where:
                raise ValueError(f"of {first.batch.environment} on {first.batch.device}")
            return []
        compare(self, first, stored if where else self._anywhere(stored), whole=not where)
        return vouches

    def _anywhere(self, stored: Find) -> Find:
        return lambda checksum: self.found(checksum) or stored(checksum)

    def _lines(self, device: str, environment: str) -> Iterator[tuple[str, str]]:
        """(file:number, line); of what lies elsewhere no file is told."""
        for folder in self.folders:
            path = folder / device / f"{environment}{SUFFIX}"
            yield from ((f"{path}:{number}", line) for number, line in enumerate(lines(path), 1))
        yield from (("", line) for line in self.more)

    def opened(self, line: str) -> list[Vouch]:
        """One for each key that did sign it, in the order of its signatures.

        ValueError says why nobody can be believed to have said this.
        """
        if keyless.is_bundle(line):
            name, key, body = keyless.opened(line, self.keys)
            signers = [envelope.Signed(name, key, line)]
        else:
            signers, body = envelope.opened(line, self.keys)
        said = statement.read(body)
        return [self._vouch(one, said) for one in signers]

    def _vouch(self, signed: envelope.Signed, said: statement.Statement) -> Vouch:
        name, key, line = signed
        batch = said.batch
        refused = key.untrusted_reason(batch.device, self.environments.get(batch.environment))
        return Vouch(line, name, key, batch, said, refused, self._is_other_lock(said))

    def _is_other_lock(self, said: statement.Statement) -> bool:
        digest, batch = said.digest(statement.LOCK), said.batch
        if digest is None or self.project is None:
            return False
        return digest != statement.lock_digest(self.project, batch.environment, batch.device)

    def faults(self) -> list[str]:
        """Every envelope of the store that says nothing, or of the wrong place."""
        paths = [path for folder in self.folders for path in in_folders(folder, f"*{SUFFIX}")]
        places = dict.fromkeys((path.parent.name, path.name.removesuffix(SUFFIX)) for path in paths)
        return [fault for place in places for fault in self.at(*place).faults]


def folder_of(evidence: Path) -> Path:
    """Beside the evidence: whoever reads that finds nothing but records in it."""
    return evidence.with_name("signatures")


def beside(path: Path) -> Path:
    """Where the envelopes of a file of records lie: spec/v1/bundle.md of in-toto."""
    return path.with_name(path.name + SUFFIX)


def lines(path: Path) -> list[str]:
    """Of a bundle; none where there is none."""
    if not is_there(path):
        return []
    return [line for line in read_text(path, "No envelopes can be read there.").split("\n") if line.strip()]


def verified(signatures: Signatures, records: Iterable[Record] | Find, line: str) -> Vouch:
    """An envelope that came with records; ValueError where it is not believed, or not of these very records."""
    find = records if callable(records) else {one.checksum: one.line().encode("ascii") for one in records}.get
    vouches = signatures.opened(line)
    told = compare(signatures, vouches[0], find, whole=True)
    days = sorted(told.days)
    vouch = max(vouches, key=lambda vouch: (not vouch.refused, all(map(vouch.key.is_valid_at, days))))
    if vouch.refused:
        raise ValueError(f"the key {vouch.name} is {vouch.refused}")
    if outside := next((day for day in days if not vouch.key.is_valid_at(day)), None):
        raise ValueError(f"the key {vouch.name} is not believed of records of {outside}")
    return vouch


def compare(signatures: Signatures, vouch: Vouch, find: Find, *, whole: bool) -> statement.Told:
    """What the records that it names say; ValueError where it says something else of them.

    whole: all have to be there.  Else some may have given way to better ones of the same key: then the others decide.
    """
    told, missing = statement.Told(), 0
    for checksum in vouch.batch.checksums:
        if (line := find(checksum)) is None:
            missing += 1
        else:
            told.add(line)
    said, name = vouch.said, vouch.name
    if missing and whole:
        raise ValueError(f"{missing} of the {len(vouch.batch.checksums)} records that {name} signed are not there")
    if not told.places:
        return told
    if told.places - {vouch.place}:
        raise ValueError(f"{name} signed other records as those of {vouch.batch.environment} on {vouch.batch.device}")
    if not missing and said.digest(statement.RECORDS) != told.digest:
        raise ValueError(f"the records are not, byte for byte, what {name} signed")
    if not missing and said.digest(statement.SUITE) != told.suite:
        raise ValueError(f"{name} signed them as records of another suite")
    if told.result not in _UP_TO[said.predicate.result] or (not missing and told.result != said.predicate.result):
        raise ValueError(f"{name} signed them as {said.predicate.result}, and that they are not")
    _check_stack(signatures, vouch, told, missing > 0)
    return told


_UP_TO: Final = {"PASSED": ["PASSED"], "WARNED": ["PASSED", "WARNED"], "FAILED": ["PASSED", "WARNED", "FAILED"]}


def _check_stack(signatures: Signatures, vouch: Vouch, told: statement.Told, partly: bool) -> None:
    """ValueError where it was said to be made of something else than its records tell, or of nothing.

    Records tell no lock file.  One that is not this repository's may be an earlier one: that is told, not refused.
    partly: what is there may tell of one image where all of them told of several, and then were said to be of none.
    """
    made_of = told.made_of
    names = (statement.IMAGE, statement.BUNDLE, statement.LOCK)
    said = {name: digest for name in names if (digest := vouch.said.digest(name))}
    if partly and not said.keys() - {statement.LOCK}:
        made_of = {}
    if said != made_of if made_of else said.keys() - {statement.LOCK}:
        raise ValueError(f"{vouch.name} signed them as made of {_stack(said)}, and they tell of {_stack(made_of)}")
    if not said and not _has_no_lock(signatures, vouch.batch):
        raise ValueError(f"{vouch.name} does not say what their environment was made of")


def _has_no_lock(signatures: Signatures, batch: statement.Batch) -> bool:
    """As an image of NVIDIA's: then the records alone could tell."""
    project = signatures.project
    return project is not None and statement.lock_digest(project, batch.environment, batch.device) is None


def _stack(digests: Mapping[str, str]) -> str:
    return " and ".join(f"the {name} {digest[:12]}" for name, digest in digests.items()) or "no image and no bundle"


def claimed(told: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(checksum, the key by its hint), unverified: it keeps records of different keys apart, and proves nothing."""
    for line in told:
        try:
            hint, body = (keyless if keyless.is_bundle(line) else envelope).unverified(line)
            batch = statement.read(body).batch
        except ValueError:
            continue
        yield from ((checksum, hint) for checksum in batch.checksums)
