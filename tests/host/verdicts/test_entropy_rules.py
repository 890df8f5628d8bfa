"""The rules of `tfdet check` for values that differ from run to run, each with code that it must not report."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfdet.verdicts.entropy.find_entropy import RULES
from tfdet.verdicts.programs import parse_programs

HEAD = """import asyncio, concurrent.futures as cf, glob, os, random, time, uuid
from datetime import datetime
from pathlib import Path
import numpy as np, torch
from torch.utils.data import DataLoader
"""
FOUND = {
    "unsorted-listing": [
        "for name in os.listdir(d): use(name)",
        "paths = [load(p) for p in Path(d).iterdir()]",
        "paths = glob.glob('*.png')",
        "files = list(Path(d).rglob('*'))",
        "files = list(map(str, Path(d).glob('*')))",
    ],
    "set-order": [
        "ids = {w: i for i, w in enumerate(set(words))}",
        "for w in {'a', 'b'}: use(w)",
        "x = list(frozenset(words))",
        "seen = set(words)\nfor w in seen: use(w)",
        "a = set(x)\nrows = [f(w) for w in a - {'pad'}]",
        "text = ','.join({w for w in words})",
        "index = dict.fromkeys(set(words))",
    ],
    "hash-of-text": ["bucket = hash(name) % 16", "sorted(rows, key=hash)"],
    "sort-by-address": ["rows.sort(key=id)", "first = min(rows, key=id)"],
    "unseeded-generator": [
        "rng = np.random.default_rng()",
        "rng = np.random.default_rng(None)",
        "rng = random.Random()",
        "rng = np.random.RandomState(seed=None)",
    ],
    "seed-from-run": [
        "random.seed(time.time())",
        "torch.manual_seed(int(time.time()) % 1000)",
        "seed = os.getpid()\nnp.random.seed(seed + 1)",
        "rng = random.Random(uuid.uuid4().int)",
        "split(x, random_state=datetime.now().microsecond)",
        "rng.seed(int.from_bytes(os.urandom(4), 'big'))",
    ],
    "completion-order": [
        "for done in cf.as_completed(futures): total += done.result()",
        "rows = list(pool.imap_unordered(f, items))",
        "loader = DataLoader(data, num_workers=2, in_order=False)",
        "async def f():\n    for one in asyncio.as_completed(tasks): await one",
    ],
}
CLEAN = [
    "for name in sorted(os.listdir(d)): use(name)",
    "paths = sorted(str(p) for p in Path(d).glob('*'))",
    "names = os.listdir(d)\nnames.sort()",
    "names = os.listdir(d)\nfor name in sorted(names): use(name)",
    "count = len(os.listdir(d))",
    "if 'a' in os.listdir(d): use(d)",
    "known = {p.name for p in Path(d).iterdir()}",
    "found = pattern.glob(text)",
    "for w in sorted(set(words)): use(w)",
    "names = sorted(list(set(words)))",
    "labels = list(set(y))\nlabels.sort()",
    "n = len(set(words))",
    "if w in set(words): use(w)",
    "for n in {1, 2, 3}: use(n)",
    "a = a | b\nfor w in a: use(w)",
    "words = load()\nfor w in words: use(w)",
    "class A:\n    def __hash__(self): return hash(self.name)",
    "rng = np.random.default_rng(7)",
    "rng = np.random.default_rng(seed)",
    "rng = np.random.default_rng(**options)",
    "random.seed(0)",
    "start = time.time()\nrandom.seed(args.seed)",
    "for done in sorted(cf.as_completed(futures), key=futures.index): use(done)",
    "rows = pool.map(f, items)",
    "loader = DataLoader(data, num_workers=2)",
]


def findings_of(tmp_path: Path, text: str) -> list[tuple[str, int]]:
    """Return (rule, line) of each finding in a program of this text."""
    path = tmp_path / "train.py"
    path.write_text(HEAD + text)
    first = HEAD.count("\n")
    return [(rule.id, call.line - first) for rule, call in parse_programs([path]).entropy]


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in FOUND.items() for text in texts])
def test_each_example_has_one_finding_at_its_line(tmp_path: Path, rule: str, text: str) -> None:
    assert findings_of(tmp_path, text) == [(rule, len(text.splitlines()))]


@pytest.mark.parametrize("text", CLEAN)
def test_deterministic_code_has_no_finding(tmp_path: Path, text: str) -> None:
    assert findings_of(tmp_path, text) == []


def test_only_the_hash_seed_settles_a_rule() -> None:
    assert {rule.id: rule.settled_by for rule in RULES if rule.settled_by} == {
        "set-order": ("PYHASH",),
        "hash-of-text": ("PYHASH",),
    }


def test_each_rule_has_examples() -> None:
    assert FOUND.keys() == {rule.id for rule in RULES}
