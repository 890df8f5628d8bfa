"""`evidence add` of false records: each is refused and changes nothing, or `status` reads it as it is.

TFDET_FUZZ=3000: that many mutants, from a random seed; without it the number of the week is the seed.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import weekly
from fuzzed_store import FuzzedStore, opened
from record_mutants import mutant
from record_oracle import falsehoods

FUZZ = os.environ.get("TFDET_FUZZ")
MUTANTS = int(FUZZ) if FUZZ else weekly.scale_count(400)
SEED = random.randrange(1 << 32) if FUZZ else weekly.DAY // 7
FAILED = sorted((Path(__file__).parent / "fuzzed_records").glob("*.jsonl"))  # what was taken once, and is false


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FuzzedStore]:
    with opened(tmp_path_factory.mktemp("fuzzed") / "project") as store:
        yield store


def is_taken(store: FuzzedStore, before: dict[Any, Any], lines: Sequence[bytes]) -> bool:
    """Add a file of these lines; return whether it was taken.  AssertionError if either was not done rightly."""
    path = store.project.root / "records.jsonl"
    path.write_bytes(b"".join(lines))
    return store.takes(path, f"{path}:", lambda: _check_taken(store, before, [json.loads(line) for line in lines]))


def _check_taken(store: FuzzedStore, before: dict[Any, Any], records: Sequence[dict[str, Any]]) -> None:
    """The records are true and changed only their own cells; a control (solution none) may change all of its source."""
    own = {(r["environment"], r["device"]["model"], r["source"], r["solution"]) for r in records}
    controls = {place[:3] for place in own if place[3] == "none"}
    after = store.cells()
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert all(key in own or key[:3] in controls for key in changed), changed
    assert not [text for record in records for text in falsehoods(store.facts, record)]


@weekly.on_day(0, days=2)
def test_each_mutant_is_refused_or_taken_as_it_is(store: FuzzedStore) -> None:
    before, taken, wrong = store.cells(), [], []
    for number in range(MUTANTS):
        rng = random.Random(f"{SEED} {number}")
        lines = [mutant(rng, store.genuine)]
        try:
            if is_taken(store, before, lines):
                taken.append(store.project.root / f"taken-{number}.jsonl")
                taken[-1].write_bytes(lines[0])
        except AssertionError as error:
            wrong.append(f"mutant {number} of {SEED}: {str(error)[:3000]}\n{lines[0][:4000]!r}")
    assert not wrong, f"{len(wrong)} of {MUTANTS}\n" + "\n".join(wrong[:20])
    assert MUTANTS / 50 < len(taken) < MUTANTS, len(taken)
    store.check_together(taken)


@pytest.mark.parametrize("path", FAILED, ids=lambda path: path.stem)
def test_a_once_accepted_falsehood_is_refused(store: FuzzedStore, path: Path) -> None:
    for line in path.read_bytes().splitlines(keepends=True):
        assert not is_taken(store, {}, [line])
