"""The changes of source lines that are tried as fixes, and the search for the smallest set of pins."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfdeterminism.trace.causes import source_fixes
from tfdeterminism.trace.interpose import kinds
from tfdeterminism.trace.schema.ledger import read_ledgers, split_place
from tfdeterminism.trace.search.minimize import ddmin
from tfdeterminism.trace.search.source_fix_trial import SourceFix


@settings(max_examples=200, deadline=None)
@given(st.sets(st.integers(0, 11), min_size=1, max_size=3))
def test_ddmin_finds_the_parts_that_are_needed(needed: set[int]) -> None:
    tried: list[list[int]] = []

    def test(part: list[int]) -> bool:
        tried.append(part)
        return needed <= set(part)

    assert set(ddmin(list(range(12)), test)) == needed


# (kind of nondeterminism, line before, line after its edit); _TICKS and _NAMES: counters that the fix defines.
NUMBERED = "__import__('re').sub('0x[0-9a-f]+', lambda found: str(_OBJECTS.setdefault(found.group(), len(_OBJECTS))), "
FIXES = [
    ("addresses", "layers = set(model.children())", "layers = dict.fromkeys(model.children())"),
    ("addresses", "ordered = sorted(nodes, key=id)", "ordered = list(nodes)"),
    ("addresses", "nodes.sort(key=id)", "pass  # in the order in which they were added"),
    ("addresses", "random.seed(id(x) % 7)", "random.seed(0)"),
    ("addresses", "seed = crc32(repr(model).encode())", "seed = 0"),
    ("system", "n = min(64, psutil.virtual_memory().available >> 20)", "n = min(64, (1 << 30) >> 20)"),
    ("system", "random.seed(os.getloadavg()[0])", "random.seed(0)"),
    ("system", "load = os.getloadavg()[0] / 4", "load = 1.0 / 4"),
    ("system", "name = check_output(['date']).decode().strip()", "name = '0'"),
    ("system", "name = check_output(['date']).strip()", "name = b'0'"),
    ("hash-seed", "x = ','.join({c for n in names for c in n})", "x = ','.join(sorted({c for n in names for c in n}))"),
    ("hash-seed", "x = sorted(names, key=len)", "x = sorted(sorted(names), key=len)"),
    ("clock", "run = time.time_ns()\nrng = random.Random(run)", "run = 0\nrng = random.Random(run)"),
    ("clock", "run = now().isoformat()\nrng = random.Random(run)", "run = '0'\nrng = random.Random(run)"),
    ("clock", "np.random.seed(int(time.time()) + worker)", "np.random.seed(0 + worker)"),
    ("clock", "seed((int(time() * 1e3) ^ rank) % 2**32)", "seed((0 ^ rank) % 2**32)"),
    ("addresses", "part = hash(node) % 5", "part = __import__('zlib').crc32(repr(node).encode()) % 5"),
    ("hash-seed", "node = self.near.pop()", "node = min(self.near); self.near.remove(node)"),
    ("hash-seed", "x = list(set(words))", "x = list(sorted(set(words)))"),
    ("system", "t = os.times().elapsed", "t = (next(_TICKS) / 1000)"),
    ("system", "t = getrusage(0).ru_utime", "t = (next(_TICKS) / 1000)"),
    ("hash-seed", "for one in labels:\n    pass", "for one in sorted(labels):\n    pass"),
    (
        "hash-seed",
        "index = {w: n for n, w in enumerate(vocabulary)}",
        "index = {w: n for n, w in enumerate(sorted(vocabulary))}",
    ),
    ("listing", "files = os.listdir(folder)", "files = sorted(os.listdir(folder))"),
    ("listing", "files = list(Path('a').glob('*.txt'))", "files = list(sorted(Path('a').glob('*.txt')))"),
    ("mtime", "last = max(files, key=os.path.getmtime)", "last = max(files, key=str)"),
    ("pid", "rng = random.Random(os.getpid())", "rng = random.Random(0)"),
    ("clock", "random.seed(int(time.time() * 1000))", "random.seed(0)"),
    ("random", "rng = np.random.default_rng()", "rng = np.random.default_rng(0)"),
    ("clock", "return hosts[time.time_ns() % len(hosts)]", "return hosts[0]"),
    ("random", "n = uuid4().int", "n = __import__('uuid').UUID(int=next(_NAMES)).int"),
    ("random", "a = name(uuid.uuid4(), Random(k))", "a = name(uuid.UUID(int=next(_NAMES)), Random(k))"),
    ("random", "n = int(secrets.token_hex(4), 16)", "n = int('{:0{}x}'.format(next(_NAMES), 2 * (4)), 16)"),
    ("random", "db.execute('select x from a order by RANDOM()')", "db.execute('select x from a order by rowid')"),
    ("random", "rng = random.SystemRandom()", "rng = random.Random(0)"),
    ("random", "p = secrets.choice(plans)", "p = __import__('random').Random(0).choice(plans)"),
    ("clock", "begun = time.time()", "begun = (next(_TICKS) / 1000)"),
    ("clock", "while time.time_ns() < end:\n    pass", "while next(_TICKS) * 10**6 < end:\n    pass"),
    ("clock", "a = datetime.now(zone(time()))", "a = datetime.fromtimestamp(next(_TICKS) / 1000, zone(time()))"),
    ("clock", "a = datetime.now(tz=utc)", "a = datetime.fromtimestamp(next(_TICKS) / 1000, utc)"),
    ("mtime", "n = os.stat(p).st_mtime_ns", "n = __import__('zlib').crc32(open(p, 'rb').read())"),
    ("mtime", "n = int(p.stat().st_mtime * 9)", "n = int(__import__('zlib').crc32(open(p, 'rb').read()) * 9)"),
    ("mtime", "n = getmtime(p) % 9", "n = __import__('zlib').crc32(open(p, 'rb').read()) % 9"),
    ("pid", "x = Random(current_process().pid)", "x = Random(0)"),
    ("memory", "x = np.ndarray(3, np.int32)", "x = np.zeros(3, np.int32)"),
    ("completion", "data.with_options(o)\no.deterministic = False", "data.with_options(o)\no.deterministic = True"),
    (
        "completion",
        "async def f():\n    await asyncio.gather(*[g(x) for x in y])",
        "async def f():\n    [await _one for _one in [g(x) for x in y]]",
    ),
    ("completion", "async def f():\n    await gather(a(), b())", "async def f():\n    [await a(), await b()]"),
    ("completion", "model.fit(Rows(workers=3))", "model.fit(Rows(workers=1))"),
    ("completion", "x = list(pool.map(f, xs))", "x = list(map(f, xs))"),
    (
        "completion",
        "made = [self.pool.submit(f, n) for n in ns]",
        "made = [(lambda future: (future.exception(), future)[1])(self.pool.submit(f, n)) for n in ns]",
    ),
    ("addresses", "x = {a for a in b}", "x = dict.fromkeys(a for a in b)"),
    ("completion", "for f in as_completed(futures):\n    pass", "for f in list(futures):\n    pass"),
    ("completion", "x = list(pool.imap_unordered(f, xs))", "x = list(pool.imap(f, xs))"),
    ("completion", "loader = DataLoader(d, in_order=False)", "loader = DataLoader(d, in_order=True)"),
    (
        "completion",
        "[p.start() for p in ps]; [p.join() for p in ps]",
        "[(p.start(), p.join()) for p in ps]; [p.join() for p in ps]",
    ),
    ("hash-seed", "for word in set(words): add(word)", "for word in sorted(set(words)): add(word)"),
    ("completion", "p.apply_async(f, (n,), callback=rows.append)", "rows.append(p.apply(f, (n,)))"),
    (
        "completion",
        "p.apply_async(f, kwds=k, error_callback=print, callback=lambda r: rows.append(r))",
        "(lambda r: rows.append(r))(p.apply(f, kwds=k))",
    ),
    (
        "completion",
        "pool.submit(f, n).add_done_callback(store)",
        "(lambda future: (future.exception(), store(future)))(pool.submit(f, n))",
    ),
    ("addresses", "x = sorted(layers, key=lambda l: repr(l))", "x = list(layers)"),
    ("addresses", "layers.sort(key=str)", "pass  # in the order in which they were added"),
    (
        "listing",
        "with os.scandir(d) as it:\n    x = [e for e in it]",
        "with os.scandir(d) as it:\n    x = [e for e in sorted(it, key=lambda entry: entry.name)]",
    ),
    ("random", "torch.seed()", "torch.manual_seed(0)"),
    ("random", "np.random.seed()", "np.random.seed(0)"),
    ("random", "g = Generator.from_non_deterministic_state(alg=1)", "g = Generator.from_seed(0, alg=1)"),
    ("random", "rng = default_rng(seed=None)", "rng = default_rng(0)"),
    ("random", "rng = default_rng(a.seed)", "rng = default_rng(0 if a.seed is None else a.seed)"),
    ("random", "random.seed(n)", "random.seed(0 if n is None else n)"),
    ("random", "x = os.getrandom(4)", "x = bytes(4)"),
    ("pid", "s = threading.current_thread().native_id", "s = 0"),
    ("memory", "x = torch.empty(3, 4)", "x = torch.zeros(3, 4)"),
    ("memory", "x = np.empty_like(y)", "x = np.zeros_like(y)"),
    (
        "completion",
        "done, rest = wait(fs, 9)",
        "done, rest = wait(fs, 9); done = [one for one in fs if one in done]"
        "; rest = [one for one in fs if one in rest]",
    ),
    (
        "addresses",
        "for x in done:\n    pass\nasync def f():\n    done, _ = await asyncio.wait(ts)",
        "for x in done:\n    pass\nasync def f():\n    done, _ = await asyncio.wait(ts); "
        + "done = [one for one in ts if one in done]",
    ),
    ("completion", "x = q.get(timeout=3)", "x = q.get()"),
    ("completion", "q.put(x, timeout=3)", "q.put(x)"),
    (
        "addresses",
        "x = sorted(nodes, key=id)",
        "x = list(nodes)",
    ),
    ("addresses", "name = f'{x} {n}'", "name = " + NUMBERED + "f'{x} {n}')"),
    ("addresses", "d[repr(x)] = 1", "d[" + NUMBERED + "repr(x))] = 1"),
    (
        "system",
        "m = psutil.virtual_memory()\nn = m.available // 9",
        "m = __import__('types').SimpleNamespace(available=(1 << 30))\nn = m.available // 9",
    ),
    (
        "system",
        "t = os.times()\nwhile t.user < 2: pass",
        "t = __import__('types').SimpleNamespace(user=(next(_TICKS) / 1000))\nwhile t.user < 2: pass",
    ),
    ("system", "a, b, c = os.getloadavg()", "a, b, c = (1.0, 1.0, 1.0)"),
    ("clock", "db.execute(\"select datetime('now')\")", "db.execute(\"select datetime('2000-01-01 00:00:00')\")"),
    (
        "clock",
        'db.execute(sql)\nsql = "insert into a values (CURRENT_TIMESTAMP)"',
        "db.execute(sql)\nsql = \"insert into a values ('2000-01-01 00:00:00')\"",
    ),
    ("one-worker", "loader = DataLoader(d, num_workers=4)", "loader = DataLoader(d, num_workers=0)"),
]


@pytest.mark.parametrize(("kind", "before", "after"), FIXES)
def test_a_fix_changes_the_line(kind: str, before: str, after: str) -> None:
    assert source_fixes.changes_of_line(kind, before, 1)[0] == after


def test_a_line_that_several_processes_run_seeds_each_by_its_arguments() -> None:
    text = "def begin(number):\n    np.random.seed()\n"
    by_argument, constant = source_fixes.changes_of_line("random", text, 2, in_processes=True)
    assert "crc32(repr((number,))" in by_argument and "np.random.seed(0)" in constant
    without_arguments = text.replace("number", "")
    assert source_fixes.changes_of_line("random", without_arguments, 2, in_processes=True) == [
        without_arguments.replace("seed()", "seed(0)")]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "source = random.SystemRandom()\nother = random.SystemRandom()\nx = source.choice(names)\n",
        "class A:\n    rng = random.SystemRandom()\n    def f(self): return self.rng.random()\n",
    ],
)
def test_a_system_generator_that_is_made_elsewhere_gets_a_seed(text: str) -> None:
    (changed,) = source_fixes.changes_of_line("random", text, 3)
    assert changed == text.replace("random.SystemRandom()", "random.Random(0)", 1)


def test_threads_in_turn_are_not_called_an_order_of_results() -> None:
    (changed,) = source_fixes.changes_of_line("completion", "for p in ps: p.start()", 1)
    assert source_fixes.advice("completion", changed.splitlines()) != source_fixes.advice("completion")


def test_a_set_that_is_made_elsewhere_keeps_the_order_of_its_making() -> None:
    before = "def nodes(self):\n    return sorted(self.all, key=id)\n\n\nmade = set(names)\n"
    after = "def nodes(self):\n    return list(self.all)\n\n\nmade = dict.fromkeys(names)\n"
    assert after in source_fixes.changes_of_line("addresses", before, 2)


def test_a_set_of_that_name_keeps_the_order_in_which_it_is_filled() -> None:
    before = (
        "class R:\n    def __init__(self):\n        self.all = set()\n    def put(self, x):\n        self.all.add(x)\n"
    )
    after = before.replace("set()", "{}").replace(".add(", ".setdefault(")
    assert source_fixes.sets_as_dicts(before, {"all"}) == after
    assert source_fixes.sets_as_dicts(before, {"others"}) == before
    set_of_attribute = "def nodes(self):\n    return {one for one in self.all}\n"
    assert "dict.fromkeys(one for one in self.all)" in source_fixes.sets_as_dicts(set_of_attribute, {"nodes"})
    nested_sets = "def nodes():\n    nodes = set(set(names))\n    return nodes\n"
    assert "nodes = dict.fromkeys(set(names))\n" in source_fixes.sets_as_dicts(nested_sets, {"nodes"})


def test_counted_time_ends_a_loop() -> None:
    before = '"""Trains."""\nimport time\nend = time.time() + 1\nturns = 0\nwhile time.time() < end:\n    turns += 1\n'
    (changed,) = source_fixes.changes_of_line("clock", before, 5)
    names: dict[str, Any] = {}
    exec(source_fixes.with_counters(changed), names)
    assert names["turns"] == 999


@pytest.mark.parametrize("kind", [kind.name for kind in kinds.ALL if kind.has_pin])
def test_every_kind_has_advice_and_a_documented_limit(kind: str) -> None:
    assert source_fixes.advice(kind)
    module = sys.modules[kinds.BY_NAME[kind].__module__]
    assert module.__doc__
    assert {"Pinned:", "annot be pinned:", "Example:"} <= {word for word in ("Pinned:", "annot be pinned:", "Example:")
                                                            if word in module.__doc__}  # fmt: skip


ADVICE = [  # (kind, line, recorded calls, a part of the advice)
    ("clock", "signal.setitimer(signal.ITIMER_REAL, 1)", ["setitimer"], "number of steps that you choose"),
    ("addresses", "names[f'{x}'] = 1", ["an object's text"], "names or numbers of their own"),
    ("addresses", "log(x)", ["an object's text"], "names or numbers of their own"),
    ("random", "f = NamedTemporaryFile()", ["a temporary name", "random.Random()"], "names of temporary files"),
    ("clock", "db.execute(\"select date('now')\")", ["SQLite's date()"], "give SQL a time"),
    ("system", "t = os.times().user", ["times"], "count steps"),
    ("completion", "done, _ = wait(fs)", ["wait"], "not through the sets"),
]


@pytest.mark.parametrize(("kind", "text", "calls", "words"), ADVICE)
def test_the_advice_fits_the_line(kind: str, text: str, calls: list[str], words: str) -> None:
    changed = source_fixes.changes_of_line(kind, text, 1)
    assert words in source_fixes.advice(kind, changed[0].splitlines() if changed else (), calls)


def test_the_advice_is_that_of_the_change() -> None:
    sets, digests = (
        source_fixes.advice("hash-seed", source_fixes.changes_of_line("hash-seed", text, 1))
        for text in ("x = list({'a', y})", "x = hash(y) % 64")
    )
    assert len({sets, digests, source_fixes.advice("hash-seed")}) == 3
    tasks, callbacks = (
        source_fixes.advice("completion", source_fixes.changes_of_line("completion", text, 1))
        for text in ("x = list(pool.map(f, xs))", "p.apply_async(f, (n,), callback=rows.append)")
    )
    text = "rows = db.execute('select x from a ORDER  BY random() limit 9')"
    ordered = source_fixes.advice("random", source_fixes.changes_of_line("random", text, 1))
    assert ordered not in (source_fixes.advice("random"), source_fixes.advice("random", ["rng = default_rng(0)"]))
    assert "share nothing" in tasks and callbacks == source_fixes.advice("completion")


NO_FIXES = [
    ("system", "t = os.times()\nprint(t.user, t[0])"),
    ("hash-seed", "x = words.pop().lower()"),
    ("hash-seed", "x = y = words.pop()"),
    ("clock", "begun = datetime.strptime(text)"),
    ("random", "x = choice(plans)"),
    ("clock", "x = ("),
    ("completion", "threading.Timer(1, stop).start()"),
    ("completion", "data = data.map(f)"),
]


@pytest.mark.parametrize(("kind", "text"), NO_FIXES)
def test_no_fix_is_made_up(kind: str, text: str) -> None:
    assert source_fixes.changes_of_line(kind, text, 1) == []


def test_a_ledger_that_was_cut_off_is_passed_by(tmp_path: Path) -> None:
    (tmp_path / "ledger-0-1.json").write_text('[{"kind": "clo')
    (tmp_path / "ledger-0-2.json").write_text('[{"kind": "clock"}]')
    assert read_ledgers(str(tmp_path)) == []


# "-": the line is not known; "global:MODULE": the global generator of a module.
PLACES = [("a.py:3", ("a.py", 3)), ("a.py:3 (import)", ("a.py", 3)), ("-", ("", 0)), ("global:torch", ("", 0))]


@pytest.mark.parametrize(("place", "expected"), PLACES)
def test_a_place_is_split(place: str, expected: tuple[str, int]) -> None:
    assert split_place(place) == expected


@pytest.mark.parametrize(
    ("above", "drawn"),
    [
        ("from random import *", "random()"),
        ("from random import random", "random()"),
        ("import numpy.random as random", "random.rand()"),
        ("import random", "random.random()"),
        ("from os.path import *\nimport random", "random.random()"),
        ("import random as r", "r.random()"),
    ],
)
def test_seeding_takes_no_name_of_the_program_away(above: str, drawn: str) -> None:
    lines = source_fixes.seed_lines("global:random") + source_fixes.seed_lines("global:numpy")
    source = source_fixes.with_lines(f"{above}\nimport math\nvalue = {drawn}\n", lines)
    values = set()
    for _ in range(2):
        names: dict[str, Any] = {}
        exec(source, names)
        values.add(names["value"])
    assert len(values) == 1
    assert ("import random as _random" in source) == (above in (
        "from random import *", "from random import random", "import numpy.random as random"
    ))  # fmt: skip


DIFF = """--- model.py
+++ model.py
@@ -7 +7 @@
-order = list(names)
+order = sorted(names)
--- train.py
+++ train.py
@@ -3,0 +4,2 @@
+import random
+random.seed(0)
@@ -0,0 +1 @@
+import os"""


def test_a_fix_says_where_its_lines_go() -> None:
    assert SourceFix("hash-seed", DIFF.splitlines()).edits() == [
        ("model.py:7", ["order = sorted(names)"]),
        ("behind train.py:3", ["import random", "random.seed(0)"]),
        ("at the top of train.py", ["import os"]),
    ]
