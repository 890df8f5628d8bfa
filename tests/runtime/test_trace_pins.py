"""What a pin takes away, in one process and in its children; the ledger of what enters a program.

A pin gives a program the same value in every run, for one kind of nondeterminism. The fixture runner(text) writes a
program without its first empty line; printed(n, pins={kind: places}) is the set of what n runs print. Places are lines,
None for everywhere, or "global:MODULE", its global generator; vary={kind: seed} gives a kind other values.
"""

from __future__ import annotations

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from interposed_programs import ROOT, SLEEP, write_program

from tfdet.engines.interpreters import find_python
from tfdeterminism.trace.causes import source_fixes
from tfdeterminism.trace.interpose import kinds
from tfdeterminism.trace.interpose.ledger import Ledger
from tfdeterminism.trace.schema.ledger import read_ledgers
from tfdeterminism.trace.search import interposed_runs
from tfdeterminism.trace.search.interposed_runs import PRINTED

# kind: a program that prints something else in every run, and that this kind's pin alone mends.
PROGRAMS = {
    "hash-seed": "print(list({'a%d' % i for i in range(40)}))",
    "pid": "import os\nprint(os.getpid())",
    "clock": "import time\nprint(time.time())",
    "random": "import numpy\nprint(numpy.random.default_rng().integers(1 << 40))",
    "completion": f"""
import os, time
from concurrent.futures import ThreadPoolExecutor, as_completed

def work(number):
    {SLEEP}
    return number

with ThreadPoolExecutor(8) as pool:
    print([one.result() for one in as_completed([pool.submit(work, n) for n in range(24)])])
""",
    "system": "print(open('/proc/sys/kernel/random/uuid').read())",
    "background-thread": """
import threading

count = [0]

def work():
    while True:
        count[0] += 1

threading.Thread(target=work, daemon=True).start()
print(sum(range(100000)) + count[0])
""",
    "mtime": f"""
import os, threading, time
def write(number):
    {SLEEP}
    open("part%d" % number, "w").close()
threads = [threading.Thread(target=write, args=(n,)) for n in range(12)]
[one.start() for one in threads]
[one.join() for one in threads]
print(sorted((name for name in os.listdir(".") if name.startswith("part")), key=os.path.getmtime))
""",
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_pin_takes_its_kind_away_and_no_other(kind: str, runner: Any) -> None:
    program = runner(PROGRAMS[kind])
    assert len(program.printed(3)) > 1, "the control agrees: nothing was shown"
    assert len(program.printed(pins={kind: None})) == 1
    helping = ("completion", "background-thread") if kind == "mtime" else ()
    other_kinds = {name: None for name in PROGRAMS if name != kind and name not in helping}
    if (kind, "random") in (("completion", "random"), ("mtime", "random")):
        del other_kinds["random"]  # what their threads sleep is random
    assert len(program.printed(3, pins=other_kinds)) > 1


BY_KEYWORD = """
import concurrent.futures, datetime, glob, multiprocessing.pool, os, queue, random, tempfile, uuid
import numpy
open(file="/dev/urandom", mode="rb").read(2)
os.listdir(path="."), list(os.scandir(path=".")), glob.glob(pathname="*"), os.stat(path="."), os.getenv(key="HOME")
os.getrandom(size=3, flags=0), datetime.datetime.now(tz=None), uuid.uuid1(node=3, clock_seq=5)
random.seed(a=None), random.randint(a=1, b=9), random.Random(x=None), random.sample(population=range(9), k=2)
numpy.random.seed(seed=None), numpy.random.normal(loc=0, scale=1, size=2), numpy.random.default_rng(seed=None)
numpy.random.RandomState(seed=None), numpy.empty(shape=3), numpy.empty_like(prototype=numpy.ones(3))
tempfile.mkdtemp(suffix=None, prefix="k")
values = queue.Queue(maxsize=0)
values.put(item=1, block=True, timeout=None), values.get(block=True, timeout=5)
with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
    futures = [pool.submit(abs, n) for n in range(2)]
    list(concurrent.futures.as_completed(fs=futures, timeout=9)), concurrent.futures.wait(fs=futures, timeout=9)
with multiprocessing.pool.ThreadPool(processes=2) as pool:
    list(pool.imap_unordered(func=abs, iterable=[1], chunksize=1)), pool.map(func=abs, iterable=[1])
    pool.apply_async(func=abs, args=(1,), callback=None).get(timeout=9), pool.apply(func=abs, args=(1,))
print("done")
"""


SYSTEM_ANSWERS = {
    "a command": "import subprocess\nprint(subprocess.check_output(['date', '+%N'], text=True))",
    "a shell": "import subprocess\nprint(subprocess.getoutput('date +%N | cut -c 1-8'))",
    "a pipe": "import os\nprint(os.popen('date +%N').read())",
    "a path": "import pathlib\nprint(pathlib.Path('/proc/sys/kernel/random/uuid').read_text())",
    "bytes": "print(open('/proc/sys/kernel/random/uuid', 'rb').readline())",
    "times": "import os, resource\nsum(range(10**6))\nprint(os.times(), resource.getrusage(0))",
}


@pytest.mark.parametrize("how", SYSTEM_ANSWERS)
def test_the_system_answers_a_pinned_line_as_in_the_first_run(how: str, runner: Any) -> None:
    program = runner(SYSTEM_ANSWERS[how])
    assert len(program.printed(3)) > 1
    line = f"main.py:{len(SYSTEM_ANSWERS[how].splitlines())}"
    assert len(program.printed(3, pins={"system": ["main.py:99"]})) > 1
    assert len(program.printed(3, pins={"system": [line]})) == 1


def test_answers_are_numbered_and_programs_that_act_run_again(runner: Any, tmp_path: Path) -> None:
    """A program that writes a file runs in each pinned run, and one that fails does so again."""
    program = runner(f"""
import os, subprocess
twice = [open("/proc/sys/kernel/random/uuid").read() for _ in range(2)]
assert twice[0] != twice[1]
subprocess.run(["sh", "-c", "echo x >> {tmp_path / "written"}"], stdout=subprocess.PIPE)
try:
    subprocess.check_output(["ls", "/no/such/folder"], stderr=subprocess.DEVNULL)
except subprocess.CalledProcessError as error:
    print(error.returncode, twice, os.getppid() > 0)
""")
    assert len(program.printed(3, pins={"system": None, "pid": None})) == 1
    assert (tmp_path / "written").read_text() == 3 * "x\n"


SQL_TIMES = ["julianday('now')", "strftime('%J')", "strftime('%J', 'now', '+1 day')", "time('now', 'subsec')"]


@pytest.mark.parametrize("function", SQL_TIMES)
def test_the_time_of_sql_is_pinned_at_its_line(function: str, runner: Any) -> None:
    text = f"""
import sqlite3, time
time.sleep(0.01)
row = sqlite3.connect(':memory:').execute("select {function}, current_date, date('2000-01-31', '+1 day'), 'now'")
print(row.fetchone())
"""
    program = runner(text)
    if "subsec" not in function:  # SQLite before 3.42 gives NULL
        assert len(program.printed(3)) > 1
    (printed,) = program.printed(3, pins={"clock": ["main.py:3"]})
    assert "'2000-02-01', 'now')" in printed


OBJECT_TEXTS = (
    "repr(x)",
    "str(x)",
    "f'{x!r:>60}'",
    "'%r' % (x,)",
    "'{}'.format([x])",
    "repr(sorted(y, key=repr)[0])",
    "hash(min(y, key=hash))",
)


@pytest.mark.parametrize("expression", OBJECT_TEXTS)
def test_addresses_in_texts_are_pinned_at_a_line(expression: str, runner: Any) -> None:
    program = runner(f"""
import random
class X:
    pass
kept = [bytes(random.randrange(10**6)) for _ in range(50)]
y = [X() for _ in range(40)]
random.shuffle(y)
for n, x in enumerate(y):
    x.n = n
print({expression})
""")
    assert len(program.printed(4, pins={"random": None})) > 1
    assert len(program.printed(3, pins={"random": None, "addresses": ["main.py:9"]})) == 1


def test_a_set_of_sets_is_pinned_at_its_line(runner: Any) -> None:
    program = runner("""
pairs = {frozenset((a, b)) for a in "uvwxyz" for b in "uvwxyz"}
names = {("k", pair) for pair in pairs}
print([sorted(pair) for pair in pairs])
print([sorted(pair) for _, pair in names])
print(hash(frozenset("abc")))
""")
    assert len(program.printed(3)) > 1
    assert len(program.printed(3, pins={"hash-seed": [f"main.py:{line}" for line in range(1, 7)]})) == 1


def test_functions_take_their_arguments_by_keyword(runner: Any) -> None:
    program = runner(BY_KEYWORD)
    pins = [
        kind.name for kind in kinds.ALL if kind.has_pin and kind.name not in ("schedule", "switches", "tensor-fusion")
    ]
    varied = ("listing", "completion", "machine", "processors", "time-zone", "hash-seed")
    for how in ({}, {"pins": dict.fromkeys(pins)}, {"vary": dict.fromkeys(varied, 3)}):
        assert program.printed(1, **how) == {"done\n"}


PRODUCERS = f"""
import os, queue, threading, time
numbers = queue.Queue(4)
def produce(part):
    for number in part:
        {SLEEP.replace("0.03", "0.001")}
        numbers.put(number)
for k in range(2):
    threading.Thread(target=produce, args=(range(k, 40, 2),)).start()
print([numbers.get() for _ in range(40)])
"""
QUEUE_WORKERS = f"""
import os, queue, threading, time
tasks, results = queue.Queue(), []
def work():
    while True:
        number = tasks.get()
        {SLEEP.replace("0.03", "0.001")}
        results.append(number)
        tasks.task_done()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
for number in range(24):
    tasks.put(number)
tasks.join()
print(results)
"""


@pytest.mark.parametrize("text", [PRODUCERS, QUEUE_WORKERS], ids=["producers", "workers"])
def test_threads_that_share_a_queue(text: str, runner: Any) -> None:
    program = runner(text)
    assert len(program.printed(3)) > 1
    assert len(program.printed(3, pins={"completion": None})) == 1
    assert len(program.printed(2, pins={"completion": None, "pid": None, "clock": None})) == 1


PROCESSES = f"""
import multiprocessing, os, time
def work(tasks, results):
    for number in iter(tasks.get, None):
        {SLEEP.replace("0.03", "0.001")}
        results.put(number)
if __name__ == "__main__":
    tasks, results = MAKER.QUEUE(), MAKER.QUEUE()
    workers = [multiprocessing.Process(target=work, args=(tasks, results)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for number in [*range(16), None, None, None]:
        tasks.put(number)
    print([results.get() for _ in range(16)])
    for worker in workers:
        worker.join()
"""


@pytest.mark.parametrize(
    "queue",
    ["multiprocessing.Queue", "multiprocessing.SimpleQueue", "multiprocessing.JoinableQueue",
     "multiprocessing.Manager().Queue"],
)  # fmt: skip
def test_processes_that_share_a_queue(queue: str, runner: Any) -> None:
    program = runner(PROCESSES.replace("MAKER.QUEUE", queue))
    assert len(program.printed(3)) > 1
    assert len(program.printed(3, pins={"completion": None})) == 1
    assert len(program.printed(2, pins={"completion": None, "pid": None, "clock": None})) == 1


SPAWNING = """
import multiprocessing

def told(queue):
    queue.put(multiprocessing.current_process().pid)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=told, args=(queue,))
    process.start()
    print(queue.get())
    process.join()
"""


def test_a_process_that_asks_multiprocessing_for_its_number(runner: Any) -> None:
    program = runner(SPAWNING)
    assert len(program.printed(2)) == 2
    assert len(program.printed(2, pins={"pid": None})) == 1


def test_an_array_of_a_type_that_writes_nothing_is_zeros_where_it_is_pinned(runner: Any) -> None:
    given = "numpy.ndarray((4000,), numpy.uint8).any(), numpy.ndarray(3, 'u1', b'abc').any()"
    program = runner(f"import numpy\nprint({given})")
    (printed,) = program.printed(1, pins={"memory": ["main.py:2"]})
    assert printed.split() == ["False", "True"]


DRAWING = """
import os
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(1) as pool:
    print(pool.submit(os.urandom, 4).result())
"""


def test_a_call_in_a_librarys_thread_belongs_to_the_line_that_started_it(runner: Any) -> None:
    program = runner(DRAWING)
    assert len(program.printed(2, pins={"random": ["main.py:3"]})) == 2
    assert len(program.printed(2, pins={"random": ["main.py:4"]})) == 1


def test_a_ledger_is_written_by_one_thread_at_a_time(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path), "0")
    ledger.note("pid", "main.py:1", "getpid", 7, False)
    with ThreadPoolExecutor(8) as pool:
        for written in [pool.submit(ledger.write) for _ in range(400)]:
            written.result()
    assert [row.what for row in read_ledgers(str(tmp_path))] == ["getpid"]


DRAWING_WORKERS = f"""
import multiprocessing, os, random, time
import numpy

def work(number):
    {SLEEP}
    return random.random(), numpy.random.random()

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(3) as pool:
        print(pool.map(work, range(9), chunksize=1))
"""


def test_each_task_of_a_worker_draws_what_its_number_gives(runner: Any) -> None:
    program = runner(DRAWING_WORKERS)
    assert len(program.printed(4, pins={"random": ["global:random", "global:numpy"]})) == 1


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("def f(n): return random.random()", 1),
        ("def f():\n    return random.random()", 2),
        ("x = random.random()", 1),
        ("def f(self):\n    return random.random()", 2),
        ("def f(n)\n    return random.random()", 2),
    ],
)
def test_code_without_arguments_is_not_seeded_by_them(source: str, line: int) -> None:
    assert source_fixes.seeded_by_arguments(source, line, "global:random") == source


TERMINATED = """
import multiprocessing, os, sys, time

def work():
    os.getpid()
    open("begun", "w").close()
    time.sleep(600)

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        pool.apply_async(work)
        while not os.path.exists("begun"):
            time.sleep(0.01)
    print(pool._pool[0].exitcode)
"""


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_the_ledger_of_a_terminated_worker_is_read(start: str, runner: Any) -> None:
    program = runner(TERMINATED.replace("sys.argv[1]", repr(start)))
    run = program.runs.run(0)
    assert run.ends[PRINTED].strip() == "-15"
    assert [row.place for row in run.ledger if row.kind == "pid" and row.position != "0"] == ["main.py:4"]


def test_each_run_has_an_output_folder_of_its_own(runner: Any) -> None:
    lines = runner("import json, os\nprint(json.loads(os.environ['TFDET_INTERPOSE'])['out'])").printed(2)
    assert len(lines) == 2
    assert len({len(line) for line in lines}) == 1  # the environment's size moves addresses


def test_the_settings_have_the_same_size_in_each_run(runner: Any) -> None:
    program = runner("import os, time\nprint(len(os.environ['TFDET_INTERPOSE']))\ntime.sleep(0.01)")
    assert len(program.printed(3)) == 1  # the environment's size moves addresses


OTHER_PYTHONS = ("3.7", "3.8", "3.9", "3.10", "3.12", "3.13")
# Runs main.py with pins, as `locate` does; told: the settings of the interposition.
INTERPOSED = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from tfdeterminism.trace.interpose import variables
told = {"root": os.getcwd(), "out": os.getcwd(), "kept": os.getcwd(), "epoch": 0,
        "pins": dict.fromkeys(["pid", "clock", "completion"]),
        "vary": {}, "frameworks": [], "longest_wait": "600"}
os.environ.update({variables.SETTINGS_VARIABLE: json.dumps(told), "PYTHONPATH": variables.hooked_path("")})
os.execv(sys.executable, [sys.executable, "main.py"])
"""
WORKERS = """
import asyncio, multiprocessing, os, queue, subprocess, sys, threading, time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed

def work(number):
    return number, os.getpid() < 1 << 22, time.time() < 1000

async def both():
    return await asyncio.gather(asyncio.sleep(0.01, 1), asyncio.sleep(0.0, 2))

if __name__ == "__main__":
    said = [multiprocessing.get_context("fork").Pool(2).map(work, range(3))]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        said.append(pool.map(work, range(3)))
    for kind in (ThreadPoolExecutor, ProcessPoolExecutor):
        with kind(2) as pool:
            said.append([one.result() for one in as_completed([pool.submit(work, n) for n in range(3)])])
    said.append(asyncio.new_event_loop().run_until_complete(both()))
    said.append(subprocess.check_output([sys.executable, "child.py"]).strip())
    print(said)
"""


@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_workers_of_each_python_are_interposed(version: str, tmp_path: Path) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"no CPython {version} on this machine")
    program = write_program(tmp_path, main=WORKERS, child="import os\nprint(os.getpid())")
    words = [python, "-c", INTERPOSED, str(ROOT / "runtime")]
    completed = [subprocess.run(words, cwd=program, capture_output=True, text=True, timeout=120) for _ in range(2)]
    assert completed[0].returncode == 0, completed[0].stderr
    assert completed[0].stdout == completed[1].stdout
    assert "False" not in completed[0].stdout
    assert "interposed" not in completed[0].stderr


def test_a_pin_at_a_line_holds_there_alone(runner: Any) -> None:
    program = runner(
        "import numpy\nprint(numpy.random.default_rng().random())\nprint(numpy.random.default_rng().random())"
    )
    first, second = ([printed.splitlines() for printed in program.printed(2, pins={"random": [f"main.py:{line}"]})]
                     for line in (2, 3))  # fmt: skip
    assert len({lines[0] for lines in first}) == 1 and len({lines[1] for lines in first}) == 2
    assert len({lines[0] for lines in second}) == 2 and len({lines[1] for lines in second}) == 1


def test_a_set_is_sorted_at_its_line_in_an_imported_module(runner: Any) -> None:
    module = "def names():\n    return [one for one in {'a%d' % i for i in range(40)}]\n"
    program = runner("import names\nprint(names.names())", names=module)
    assert len(program.printed(2)) == 2
    assert len(program.printed(2, pins={"hash-seed": ["names.py:2"]})) == 1
    assert len(program.printed(2, pins={"hash-seed": ["names.py:1"]})) == 2


POOLS = {
    "multiprocessing.Pool(2, initializer=begin)": "pool.map(work, range(12), 1)",
    "ProcessPoolExecutor(2, initializer=begin)": "pool.map(work, range(12))",
}


@pytest.mark.parametrize(("make", "use"), POOLS.items())
def test_workers_of_a_pool_begin_alike(make: str, use: str, runner: Any) -> None:
    program = runner(f"""
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
def begin():
    global seed
    seed = os.getpid()
def work(number):
    time.sleep(os.urandom(1)[0] / 5000)
    return seed + number
if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    with {make} as pool:
        print(list({use}))
""")
    assert len(program.printed(2)) == 2
    assert len(program.printed(3, pins={"pid": None})) == 1


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_worker_whose_main_thread_hears_no_signal_is_ended(method: str, runner: Any) -> None:
    program = runner(f"""
import ctypes, multiprocessing, os, time
def child(ready):
    number = os.getpid()
    ready.set()
    lock, libc = ctypes.create_string_buffer(64), ctypes.CDLL(None)
    libc.pthread_mutex_lock(lock)
    libc.pthread_mutex_lock(lock)
if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    ready = context.Event()
    process = context.Process(target=child, args=(ready,))
    process.start()
    ready.wait()
    time.sleep(0.1)
    process.terminate()
    process.join(20)
    print(process.exitcode)
    process.kill()
""")
    assert program.printed(1) == {"-15\n"}
    ledger = read_ledgers(program.runs._out)
    assert any(row.what == "getpid" and row.position != "0" for row in ledger)


def _has_ended(stat: Path, seconds: float = 30) -> bool:
    """Whether a killed process has ended within `seconds`; without a parent that waits it stays a zombie."""
    for _ in range(int(seconds / 0.1)):
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


def test_processes_of_a_run_end_with_it_at_its_time_limit(runner: Any, tmp_path: Path) -> None:
    program = runner(f"""
import multiprocessing, os, time
def child():
    open({str(tmp_path / "number")!r}, "w").write(str(os.getppid()) + " " + os.readlink("/proc/self"))
    time.sleep(600)
if __name__ == "__main__":
    multiprocessing.get_context("fork").Process(target=child).start()
    time.sleep(600)
""")
    program.runs._limit = lambda pins: 8
    program.copy.restore()
    run = program.runs.run(0)
    assert run.failed is not None
    for number in (tmp_path / "number").read_text().split():
        assert _has_ended(Path(f"/proc/{number}/stat")), "it still runs"


def test_output_of_an_earlier_runs_process_is_not_counted(runner: Any, tmp_path: Path) -> None:
    flags = str(tmp_path / "run-")
    program = runner(f"""
import os, subprocess, time
def wait(name):
    while not os.path.exists("{flags}" + name):
        time.sleep(0.02)
if os.path.exists("{flags}first"):
    open("{flags}second", "w").close()
    wait("printed")
else:
    open("{flags}first", "w").close()
    late = "while [ ! -e {flags}second ]; do sleep 0.02; done; echo late; : > {flags}printed"
    subprocess.Popen(["sh", "-c", late])
print("one line")
""")
    assert program.printed(2) == {"one line\n"}


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_processes_are_pinned_by_their_position(method: str, runner: Any) -> None:
    program = runner(f"""
import multiprocessing, os, subprocess, sys
def child(queue):
    queue.put((os.getpid(), os.urandom(4)))
if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print(queue.get())
    process.join()
    started = [sys.executable, "-c", "import os; print(os.urandom(4))"]
    print(subprocess.run(started, capture_output=True, text=True).stdout)
""")
    assert len(program.printed(2)) == 2
    assert len(program.printed(2, pins={"pid": None, "random": None})) == 1


def test_a_ledger_names_the_users_line(runner: Any, tmp_path: Path) -> None:
    program = runner(
        "import time\nimport uuid\n\n\ndef name():\n    return uuid.uuid4()\n\n\nprint(name(), time.time())"
    )
    run = program.runs.run(0)
    rows = {(row.kind, row.place) for row in run.ledger if row.is_in_user_code}
    assert rows >= {("random", "main.py:6"), ("clock", "main.py:9")}


@pytest.mark.parametrize(
    "text",
    [
        "for one in nodes:\n    print(one.number)",
        "print(id(nodes))",
        "print([one.number for one in weakref.WeakSet(nodes)])",
        "print([hash((Node(number), 1)) for number in range(9)])",
    ],
)
def test_addresses_are_pinned_at_a_line(text: str, runner: Any) -> None:
    objects = "import random, weakref\nclass Node:\n    def __init__(self, number):\n        self.number = number\n"
    keep = "kept = [bytearray(random.randrange(5000)) for _ in range(200)]\n"
    program = runner(objects + keep + "nodes = {Node(number) for number in range(40)}\n" + text)
    assert len(program.printed(3)) > 1
    line = 5 + 1 + 1
    assert len(program.printed(3, pins={"addresses": [f"main.py:{line}"]})) == 1
    assert len(program.printed(3, pins={"addresses": ["main.py:6"]})) > 1


CALLS = {
    "random": [
        "open('/dev/urandom', 'rb').read(4)",
        "pathlib.Path('/dev/urandom').open('rb').read(4)",
        "sqlite3.connect(':memory:').execute('select random()').fetchone()",
        "sqlite3.dbapi2.connect(database=':memory:').execute('select hex(randomblob(4))').fetchone()",
        "sqlite3.connect(':memory:').execute('select hex(randomblob(NULL)), random()').fetchone()",
    ],
    "pid": ["threading.get_ident()"],
}


def test_each_call_of_a_kind_is_pinned(runner: Any) -> None:
    calls = [call for calls_of_kind in CALLS.values() for call in calls_of_kind]
    program = runner("import pathlib, sqlite3, threading\n" + "\n".join(f"print({call})" for call in calls))
    unpinned = list(zip(*[printed.splitlines() for printed in program.printed(3)], strict=True))
    assert [len(set(values)) > 1 for values in unpinned] == [True] * len(calls)
    assert len(program.printed(2, pins=dict.fromkeys(CALLS))) == 1


# Ways to ask for the time of a file; each is a sort key of entries of os.scandir().
TIMES = [
    "lambda one: one.stat().st_mtime",
    "lambda one: os.lstat(one).st_mtime_ns",
    "lambda one: os.path.getctime(one)",
]


@pytest.mark.parametrize("key", TIMES)
def test_each_way_to_ask_for_the_time_of_a_file_is_pinned(key: str, runner: Any) -> None:
    writes = "for name in sorted('abcdefgh', key=lambda _: os.urandom(4)):\n"
    writes += "    open('part' + name, 'w').close()\n    time.sleep(0.02)\n"
    expression = (
        f"print([one.name for one in sorted(os.scandir('.'), key={key}) if one.is_file() and 'part' in one.path])"
    )
    program = runner("import os, time\n" + writes + expression)
    assert len(program.printed(3)) > 1
    assert len(program.printed(3, pins={"mtime": ["main.py:5"], "listing": None})) == 1


def test_a_fork_runs_to_its_end_where_it_is_pinned(runner: Any) -> None:
    program = runner("""
import os, time
for number in range(6):
    if os.fork() == 0:
        time.sleep(0.01 * (os.urandom(1)[0] % 6))
        os.write(1, b"%d " % number)
        os._exit(0)
for number in range(6):
    os.wait()
""")
    assert len(program.printed(3)) > 1
    assert program.printed(2, pins={"completion": ["main.py:3"]}) == {"0 1 2 3 4 5 "}


def test_an_entry_of_a_folder_stays_one(runner: Any) -> None:
    expression = [
        "isinstance(one, os.DirEntry)",
        "os.fspath(one)",
        "one.inode() > 0",
        "one.is_dir()",
        "one.is_symlink()",
        "one",
    ]
    text = f"import os\nwith os.scandir('.') as entries:\n    print([({', '.join(expression)}) for one in entries])"
    [printed] = runner(text).printed(1)
    assert "(True, './main.py', True, False, False, <DirEntry 'main.py'>)" in printed


def test_resolving_a_path_reads_no_time_of_the_file(runner: Any) -> None:
    program = runner("import os\nprint(os.path.realpath('main.py'))")
    assert not [row for row in program.runs.run(0).ledger if row.kind == "mtime" and row.is_in_user_code]


@pytest.mark.parametrize(
    ("start", "seconds"), [("signal.setitimer(signal.ITIMER_REAL, {}, 0.01)", 0.05), ("signal.alarm({})", 1)]
)
def test_the_signal_of_a_timer_comes_after_a_number_of_calls(start: str, seconds: float, runner: Any) -> None:
    program = runner(f"""
import math, signal
class Late(Exception):
    pass
def stop(number, frame):
    raise Late
signal.signal(signal.SIGALRM, stop)
count = 0
try:
    {start.format(seconds)}
    while True:
        math.sqrt(count)
        count += 1
except Late:
    signal.setitimer(signal.ITIMER_REAL, 0)
print(count)
""")
    assert len(program.printed(3)) > 1, "the control agrees: nothing was shown"
    (printed,) = program.printed(3, pins={"clock": ["main.py:9"]})
    assert int(printed) == seconds * 1000 - 1


def test_the_signal_of_a_timer_comes_in_a_loop_without_calls(runner: Any) -> None:
    program = runner("""
import signal
stopped = []
signal.signal(signal.SIGALRM, lambda *_: stopped.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.05)
count = 0
while not stopped:
    count += 1
print(count)
""")
    (printed,) = program.printed(2, pins={"clock": ["main.py:4"]})
    assert 20_000 < int(printed) < 30_000


@pytest.mark.parametrize(
    ("wait", "handled"),
    [
        ("signal.pause()", "[14]"),
        ("signal.pthread_sigmask(signal.SIG_BLOCK, [14]); signal.sigwait([14])", "[]"),
        ("signal.pthread_sigmask(signal.SIG_BLOCK, [14]); signal.sigtimedwait([14], 50)", "[]"),
    ],
)
def test_a_wait_for_a_signal_ends_a_pinned_timer(wait: str, handled: str, runner: Any) -> None:
    program = runner(f"""
import signal
seen = []
signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
signal.setitimer(signal.ITIMER_REAL, 60)
for _ in range(2):
    signal.getsignal(signal.SIGALRM)
{wait}
print(seen)
""")
    assert program.printed(2, pins={"clock": None}) == {handled + "\n"}


@pytest.mark.parametrize(
    "start",
    [
        "await asyncio.gather(*[one(n) for n in range(9)])",
        "await asyncio.wait([asyncio.create_task(one(n)) for n in range(9)])",
        "await asyncio.wait([asyncio.ensure_future(one(n)) for n in range(9)])",
        "await asyncio.wait([asyncio.get_running_loop().create_task(one(n)) for n in range(9)])",
        "async with asyncio.TaskGroup() as group: [group.create_task(one(n)) for n in range(9)]",
    ],
)
def test_asyncio_tasks_are_pinned_at_the_line_that_starts_them(start: str, runner: Any) -> None:
    program = runner(f"""
import asyncio, os
found = []
async def one(number):
    await asyncio.sleep(os.urandom(1)[0] / 5000)
    found.append(number)
async def main():
    {start}
asyncio.run(main())
print(found)
""")
    assert len(program.printed(3)) > 1
    assert program.printed(2, pins={"completion": ["main.py:7"]}) == {str(list(range(9))) + "\n"}


def test_a_generator_of_tensorflow_without_a_seed_is_pinned(runner: Any) -> None:
    program = runner("""
import sys
from tfdeterminism.trace.capture.tensorflow import interposed
(interposer,) = sys.modules["_tfdet_interpose.variables"].current_interposer

class Generator:
    def __init__(self, state):
        self.state = state
    @classmethod
    def from_seed(cls, seed):
        return cls(seed)
    @classmethod
    def from_non_deterministic_state(cls):
        return cls(open("/proc/sys/kernel/random/uuid").read())

interposed._generator(interposer.kinds["random"], Generator)
print(Generator.from_non_deterministic_state().state)
""")
    assert len(program.printed()) == 2
    assert len(program.printed(pins={"random": ["main.py:16"]})) == 1


def test_a_thread_that_runs_until_it_is_told_to_end_is_not_waited_for(
    runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = runner("""
import threading
class Counter(threading.Thread):
    count, is_ended = 0, False
    def run(self):
        while not self.is_ended:
            self.count += 1
counters = [Counter() for _ in range(3)]
for counter in counters:
    counter.start()
for counter in counters:
    counter.is_ended = True
""")
    # The first of three is waited for so long; the limit of a run would end it if all were.
    monkeypatch.setattr(interposed_runs, "_SHORTEST_WAIT", 6)
    monkeypatch.setattr(interposed_runs, "_SHORTEST_LIMIT", 15)
    assert program.runs.run(0).failed is None
    assert program.runs.run(1, {"completion": None}).failed is None


def test_a_pin_that_makes_the_program_wait_is_given_up(runner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    program = runner("import time\nbegun = time.time()\nwhile time.time() < begun + 0.2:\n    time.sleep(0.01)")
    monkeypatch.setattr(interposed_runs, "_SHORTEST_LIMIT", 1)
    monkeypatch.setattr(interposed_runs, "_PATIENCE", 1)
    assert program.runs.run(0).failed is None
    failed = program.runs.run(1, {"clock": None}).failed
    assert failed is not None and "did not end within" in failed.cause
    assert subprocess.run(["pgrep", "-f", program.copy.work], capture_output=True).returncode == 1
