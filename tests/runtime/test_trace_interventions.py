"""Causes proved by interventions: what each pin removes, the search, the copied folder, the fix.

The programs need no framework: what they print or write is compared. `locate` exits with 0 if runs agree, 1 if they
differ, 3 if the program fails, 5 if a fix holds. Its answer lists as `latent` what another machine may get otherwise,
though these runs agree, and as `noted` what was neither varied nor pinned.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfdet.engines.interpreters import find_python
from tfdeterminism.trace import command_line
from tfdeterminism.trace.causes import source_fixes
from tfdeterminism.trace.interpose import kinds, variables
from tfdeterminism.trace.schema.ledger import read_ledgers, split_place
from tfdeterminism.trace.search import interposed_runs
from tfdeterminism.trace.search.interposed_runs import PRINTED, InterposedRuns
from tfdeterminism.trace.search.minimize import ddmin
from tfdeterminism.trace.search.program_copy import ProgramCopy, TooLargeError
from tfdeterminism.trace.search.program_runner import ProgramRunner
from tfdeterminism.trace.search.progress import Progress
from tfdeterminism.trace.search.schedules import Schedules

ROOT = Path(__file__).resolve().parents[2]
SLEEP = "time.sleep(0.03 * (os.urandom(1)[0] % 4))"
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


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tfdeterminism.trace", "locate", *arguments]


def environ() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    return {**inherited, "PYTHONPATH": str(ROOT / "runtime")}


def write_program(folder: Path, **files: str) -> Path:
    """Write a program into a folder: main.py and modules beside it; return the folder."""
    program_folder = folder / "program"
    program_folder.mkdir()
    for name, text in files.items():
        (program_folder / f"{name}.py").write_text(text.lstrip("\n"))
    return program_folder


@dataclass
class Runner:
    """Runs a program.

    printed(number): the set of what `number` runs print; pins: {kind: places, None for everywhere}; vary: {kind: seed}.
    """

    runs: InterposedRuns
    copy: ProgramCopy

    def printed(self, number: int = 2, **pins: Any) -> set[str]:
        outputs = set()
        for turn in range(number):
            self.copy.restore()
            run = self.runs.run(turn, pins.get("pins"), pins.get("vary"))
            assert run.failed is None, run.failed and run.failed.cause
            outputs.add(run.ends[PRINTED])
        return outputs


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def make(text: str, **modules: str) -> Runner:
        monkeypatch.chdir(write_program(tmp_path, main=text, **modules))
        monkeypatch.delenv("PYTHONHASHSEED", raising=False)
        monkeypatch.setenv("PYTHONPATH", str(ROOT / "runtime"))
        copy = ProgramCopy(["main.py"], sandbox)
        quiet = Progress(1, out=io.StringIO())
        return Runner(
            InterposedRuns(ProgramRunner(copy.program, sandbox, copy.cwd), copy, sandbox, Schedules(), quiet), copy
        )

    # It has the runs' TMPDIR, in which a manager of processes makes a socket: its path has at most 107 characters.
    with tempfile.TemporaryDirectory() as sandbox:
        yield make


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_pin_takes_its_kind_away_and_no_other(kind: str, runner: Any) -> None:
    program = runner(PROGRAMS[kind])
    assert len(program.printed(3)) > 1, "the control agrees: nothing was shown"
    assert len(program.printed(pins={kind: None})) == 1
    other_kinds = {name: None for name in PROGRAMS if name != kind and (kind, name) != ("mtime", "completion")}
    if (kind, "random") in (("completion", "random"), ("mtime", "random")):
        del other_kinds["random"]  # what their threads sleep is random
    assert len(program.printed(3, pins=other_kinds)) > 1


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


IN_TASKS = """
import multiprocessing, random

def work(number):
    "Adds noise."
    for _ in range(2):
        noise = random.random()
    return number + noise

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, range(8), chunksize=1))
"""


def test_a_task_of_a_fork_is_seeded_by_its_arguments(tmp_path: Path) -> None:
    code, output = located(write_program(tmp_path, main=IN_TASKS), "--fix", "--max-runs", "3")
    assert (code, places_of(output)) == (5, [("random", "main.py", 6)])
    (changed,) = [line for line in output["causes"][0]["fix"]["diff"] if line.startswith("+ ")]
    assert changed == "+    __import__('random').seed(__import__('zlib').crc32(repr((number,)).encode()))"


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


OTHER_PYTHONS = ("3.7", "3.8", "3.9", "3.10", "3.12", "3.13")
INTERPOSED = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from tfdeterminism.trace.interpose import variables
told = {"root": os.getcwd(), "out": os.getcwd(), "kept": os.getcwd(), "epoch": 0,
        "pins": dict.fromkeys(["pid", "clock", "completion"]),
        "vary": {}, "frameworks": []}
os.environ.update({variables.VARIABLE: json.dumps(told), "PYTHONPATH": variables.hooked_path("")})
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
    program.runs._limit = 8
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


@pytest.mark.parametrize("text", ["for one in nodes:\n    print(one.number)", "print(id(nodes))"])
def test_addresses_are_pinned_at_a_line(text: str, runner: Any) -> None:
    objects = "import random\nclass Node:\n    def __init__(self, number):\n        self.number = number\n"
    keep = "kept = [bytearray(random.randrange(5000)) for _ in range(200)]\n"
    program = runner(objects + keep + "nodes = {Node(number) for number in range(40)}\n" + text)
    assert len(program.printed(3)) > 1
    line = 5 + 1 + 1
    assert len(program.printed(3, pins={"addresses": [f"main.py:{line}"]})) == 1
    assert len(program.printed(3, pins={"addresses": ["main.py:6"]})) > 1


CALLS = {
    "random": ["open('/dev/urandom', 'rb').read(4)", "pathlib.Path('/dev/urandom').open('rb').read(4)"],
    "pid": ["threading.get_ident()"],
}


def test_each_call_of_a_kind_is_pinned(runner: Any) -> None:
    calls = [call for calls_of_kind in CALLS.values() for call in calls_of_kind]
    program = runner("import pathlib, threading\n" + "\n".join(f"print({call})" for call in calls))
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


def located(folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    return located_words(folder, *options, "--", "main.py")


def located_words(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    ran = subprocess.run(
        command("--json", *words),
        cwd=folder,
        env=environ(),
        capture_output=True,
        text=True,
    )
    assert ran.stdout, ran.stderr
    return ran.returncode, json.loads(ran.stdout)


def places_of(output: dict[str, Any]) -> list[tuple[str, str, int]]:
    return sorted(
        (cause["kind"], place["file"], place["line"]) for cause in output["causes"] for place in cause["places"]
    )


SPLIT = """
import glob


def names(folder):
    return list({"n%d" % number for number in range(40)})
"""


def test_the_cause_is_proved_and_its_fix_holds(tmp_path: Path) -> None:
    program = write_program(tmp_path, main="import split\nprint(split.names('.'))", split=SPLIT)
    code, output = located(program, "--fix")
    assert (code, places_of(output)) == (5, [("hash-seed", "split.py", 5)])
    cause = output["causes"][0]
    assert cause["proof"]["equal"] == cause["proof"]["runs"] >= 3
    assert cause["proof"]["pinned_calls"] > 0
    assert (cause["fix"]["result"], output["interventions"]["verdict"]) == ("holds", "proven")
    assert any(line.startswith("+") and "sorted(" in line for line in cause["fix"]["diff"])
    assert (program / "split.py").read_text() == SPLIT.lstrip("\n"), "the user's file was changed"


def test_two_causes_are_both_found(tmp_path: Path) -> None:
    text = "import numpy\nnames = list({'n%d' % i for i in range(40)})\nprint(names, numpy.random.RandomState().rand())"
    code, output = located(write_program(tmp_path, main=text))
    assert (code, places_of(output)) == (1, [("hash-seed", "main.py", 2), ("random", "main.py", 3)])


def test_a_cause_without_a_known_fix_is_pinned_while_the_others_fix_is_tried(tmp_path: Path) -> None:
    text = """
import tempfile
names = list({"n%d" % i for i in range(40)})
with tempfile.TemporaryDirectory() as folder:
    print(names, folder)
"""
    program = write_program(tmp_path, main=text)
    ran = subprocess.run(command("--fix", "--", "main.py"), cwd=program, env=environ(), capture_output=True, text=True)
    assert "sorted(" in ran.stdout and "(tried with random pinned: 3 of 3 runs agree)" in ran.stdout
    assert ran.returncode == 1, "one of two causes stays"


def test_pins_with_which_the_program_fails_are_not_said_to_differ(tmp_path: Path) -> None:
    text = """
import os
assert os.path.exists("/proc/%d" % os.getpid())
print(open("/proc/sys/kernel/random/uuid").read())
"""
    program = write_program(tmp_path, main=text)
    ran = subprocess.run(command("--", "main.py"), cwd=program, env=environ(), capture_output=True, text=True)
    assert "(3 different ends), and the program fails with every kind pinned that can be" in ran.stdout


def test_a_cache_of_the_first_run(tmp_path: Path) -> None:
    text = """
import os
if os.path.exists("cache"):
    value = float(open("cache").read())
else:
    value = 1 / 3
    open("cache", "w").write("%.3f" % value)
print(value)
"""
    program = write_program(tmp_path, main=text)
    code, output = located(program, "--fix")
    assert (code, places_of(output)) == (5, [("files", "main.py", 3)])
    cause = output["causes"][0]
    assert cause["first_run_only"]
    assert cause["places"][0]["path"] == str(program / "cache")
    assert os.listdir(program) == ["main.py"], "the search left something behind"


def test_a_program_that_agrees_accuses_nothing(tmp_path: Path) -> None:
    text = """
import os, sys, time, uuid
start = time.time()
name = "out-%s-%d" % (uuid.uuid4(), os.getpid())
print(sorted({"a%d" % i for i in range(40)}))
sys.stdout.flush()
"""
    code, output = located(write_program(tmp_path, main=text))
    assert (code, output["causes"], output["interventions"]["verdict"]) == (0, [], "same")
    assert output["interventions"]["compared"] == "printed text"


def test_a_rare_difference_is_searched_in_more_runs(tmp_path: Path) -> None:
    text = """
import os, tempfile
path = os.path.join(tempfile.gettempdir(), "count")
count = os.path.getsize(path) if os.path.exists(path) else 0
open(path, "a").write("x")
tempfile.TemporaryFile().close()
print(hash("a") and count // 6)
"""
    _, output = located(write_program(tmp_path, main=text))
    assert (output["interventions"]["runs"], output["interventions"]["distinct"]) == (7, 2)


def test_variables_that_are_not_varied_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that libraries read, and varied ones, are not reported."""
    text = """
import os, json, tempfile
print(os.environ.get("DATA_DIR"), os.getenv("JOB_ID") and 1, "LANG" in os.environ, tempfile.gettempdir() and 1)
def everything():
    return dict(os.environ)
everything()
try:
    os.environ["NOT_SET"]
except KeyError:
    pass
"""
    monkeypatch.setenv("JOB_ID", "7")
    code, output = located(write_program(tmp_path, main=text))
    assert (code, output["interventions"]["verdict"]) == (0, "same")
    assert output["interventions"]["noted"] == [
        "DATA_DIR at main.py:2",
        "LANG at main.py:2",
        "NOT_SET at main.py:7",
        "all variables at main.py:4",
    ]
    assert "machine" in output["interventions"]["varied"]


def test_inputs_without_a_pin_are_noted(tmp_path: Path) -> None:
    text = """
import socket, subprocess
try:
    socket.create_connection(("127.0.0.1", 9), timeout=5)
except OSError:
    pass
print(open("/proc/sys/kernel/random/uuid").read(), subprocess.check_output(["date", "+%N"]))
"""
    code, output = located(write_program(tmp_path, main=text))
    assert (code, output["causes"], output["interventions"]["verdict"]) == (1, [], "not proved")
    assert output["interventions"]["tried"]
    assert output["interventions"]["noted"] == [
        "connect at main.py:3",
        "read /proc/sys/kernel/random/uuid at main.py:6",
        "run date +%N at main.py:6",
    ]


TIMERS = """
import os, signal, threading
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 60)
signal.setitimer(signal.ITIMER_REAL, 0)
signal.alarm(0)
signal.alarm(60)
threading.Timer(60, print).cancel()
print(open("/proc/sys/kernel/random/uuid").read())
"""


def test_each_run_reads_the_file_that_was_redirected(tmp_path: Path) -> None:
    """From its position on: what was read before is not read again."""
    program = write_program(tmp_path, main="import sys\nassert sys.stdin.read() == '1\\n2\\n'\nprint(hash('a'))")
    numbers = tmp_path / "numbers"
    numbers.write_text("taken\n1\n2\n")
    with numbers.open("rb", buffering=0) as redirected:
        redirected.seek(len("taken\n"))
        words = command("--json", "--", "main.py")
        ran = subprocess.run(words, cwd=program, env=environ(), capture_output=True, text=True, stdin=redirected)
        assert redirected.tell() == len("taken\n"), "a shell's loop over the lines would end"
    assert (ran.returncode, places_of(json.loads(ran.stdout))) == (1, [("hash-seed", "main.py", 3)])


def test_no_run_waits_for_a_pipe(tmp_path: Path) -> None:
    program = write_program(tmp_path, main="import sys\nassert sys.stdin.read() == ''\nprint(hash('a'))")
    read_end, write_end = os.pipe()
    try:
        words = command("--json", "--", "main.py")
        ran = subprocess.run(words, cwd=program, env=environ(), capture_output=True, text=True, stdin=read_end)
    finally:
        os.close(read_end)
        os.close(write_end)
    assert (ran.returncode, places_of(json.loads(ran.stdout))) == (1, [("hash-seed", "main.py", 3)])


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


def test_timers_are_noted(tmp_path: Path) -> None:
    _, output = located(write_program(tmp_path, main=TIMERS))
    assert output["interventions"]["noted"] == [
        "Timer at main.py:7",
        "read /proc/sys/kernel/random/uuid at main.py:8",
    ]


def test_timers_of_signals_are_noted_of_a_program_that_agrees(tmp_path: Path) -> None:
    """They have a pin, and are not varied."""
    _, output = located(write_program(tmp_path, main=TIMERS.replace("print(open(", "(open(")))
    assert output["interventions"]["verdict"] == "same"
    assert {"alarm at main.py:6", "setitimer at main.py:3"} <= set(output["interventions"]["noted"])


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


@pytest.mark.parametrize("before", [None, "5"])
def test_a_file_outside_the_folder(before: str | None, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    if before is not None:
        cache.write_text(before)
    text = f"""
import os
count = int(open({str(cache)!r}).read()) if os.path.exists({str(cache)!r}) else 0
open({str(cache)!r}, "w").write(str(count + 1))
print(count)
"""
    code, output = located(write_program(tmp_path, main=text))
    assert (code, places_of(output)) == (1, [("files", "main.py", 2)])
    assert output["causes"][0]["places"][0]["path"] == str(cache)
    assert (cache.read_text() if cache.exists() else None) == before, "the search changed the user's file"


H5PY_FILES = """
import ctypes

libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p

def make_fid(name, mode, userblock_size, fapl):
    file = ctypes.c_void_p(libc.fopen(name.encode(), b"a"))
    libc.fputs(b"a run", file)
    length = libc.ftell(file)
    libc.fclose(file)
    return length

class File:
    def __init__(self, name, mode):
        self.length = make_fid(name, mode, 0, None)
"""


@pytest.mark.parametrize("name", ["PATH", "pathlib.Path(PATH)", "'file:' + PATH + '?mode=rwc', uri=True"])
@pytest.mark.parametrize("before", [False, True])
def test_a_database_outside_the_folder(before: bool, name: str, tmp_path: Path) -> None:
    path = tmp_path / "trials.db"
    if before:
        database = sqlite3.connect(path)
        database.execute("create table trial (number int)")
        database.commit()
        database.close()
    content = path.read_bytes() if before else None
    text = f"""
import pathlib, sqlite3
PATH = {str(path)!r}
database = sqlite3.connect({name})
database.execute("create table if not exists trial (number int)")
number = len(database.execute("select * from trial").fetchall())
database.execute("insert into trial values (?)", (number,))
database.commit()
print(number)
"""
    code, output = located(write_program(tmp_path, main=text))
    assert (code, places_of(output)) == (1, [("files", "main.py", 3)])
    assert output["causes"][0]["places"][0]["path"] == str(path)
    assert (path.read_bytes() if path.exists() else None) == content, "the search changed the user's file"


def test_a_file_in_the_folder_for_temporary_ones(tmp_path: Path) -> None:
    text = """
import os, tempfile
path = os.path.join(tempfile.gettempdir(), "count-of-a-test")
count = int(open(path).read()) if os.path.exists(path) else 0
open(path, "w").write(str(count + 1))
print(count)
"""
    code, output = located(write_program(tmp_path, main=text))
    assert (code, places_of(output)) == (1, [("files", "main.py", 3)])
    path = Path(tempfile.gettempdir(), "count-of-a-test")
    assert output["causes"][0]["places"][0]["path"] == str(path)
    assert not path.exists()


def test_a_file_of_h5py_outside_the_folder(tmp_path: Path) -> None:
    """A stand-in for h5py, whose C code opens the file."""
    path, files = tmp_path / "runs.h5", tmp_path / "program" / "h5py" / "_hl" / "files.py"
    text = f"from h5py._hl import files\nprint(files.File({str(path)!r}, 'a').length)"
    program = write_program(tmp_path, main=text)
    files.parent.mkdir(parents=True)
    files.write_text(H5PY_FILES)
    code, output = located(program)
    assert (code, {cause["kind"] for cause in output["causes"]}) == (1, {"files"})
    assert output["causes"][0]["places"][0]["path"] == str(path)
    assert not path.exists(), "the search left a file behind"


def test_a_folder_whose_files_are_counted(tmp_path: Path) -> None:
    text = "import os\nos.makedirs('out', exist_ok=True)\nn = len(os.listdir('out'))\nopen('out/%d' % n, 'w').close()"
    code, output = located(write_program(tmp_path, main=text))
    assert (code, places_of(output)) == (1, [("files", "main.py", 3)])


def test_a_global_generator_is_seeded_where_it_is_drawn_from(tmp_path: Path) -> None:
    main = "import subprocess, sys\nprint(subprocess.check_output([sys.executable, 'draw.py']))"
    program = write_program(tmp_path, main=main, draw="import random\nprint(random.random())")
    code, output = located(program, "--fix")
    assert (code, places_of(output)) == (5, [("random", "draw.py", 2)])
    assert output["causes"][0]["fix"]["diff"][0] == "--- draw.py"


RACE = """
import threading
total = [0.0]
def add(number):
    for step in range(2000):
        total[0] = total[0] * 1.0001 + 1 / (number + step + 1)
threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
for one in threads:
    one.start()
for one in threads:
    one.join()
open("done", "w").close()
print(total)
"""
DAY = "import time\nprint(time.localtime().tm_yday)"
HOST = """
import random, socket
random.seed(socket.gethostname())
print(random.random())
"""
NODE = "import platform\nprint(platform.node())"
WHOLE = "import platform\nprint(platform.uname().node, getattr(platform.uname(), 'processor', None))"
SYSTEM = "import os\nprint(len(os.uname()), os.uname().nodename)"
JOB = """
import os
os.environ["SLURM_JOB_ID"] = "17"
os.environ["SLURM_JOB_NODELIST"] = "a"
print(int(os.environ["SLURM_JOB_ID"]), os.environ["SLURM_JOB_NODELIST"])
"""
LOGIN = (
    "import os\nos.environ['USER'] = 'a'\nprint(os.getenv('USER'), os.getenv('JOB_ID'), os.environ.get('PBS_JOBID', 7))"
)
SHARE = "import multiprocessing\nprint(100 // multiprocessing.cpu_count())"


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        (RACE, "completion", 8),
        (DAY, "time-zone", 2),
        (HOST, "machine", 2),
        (NODE, "machine", 2),
        (WHOLE, "machine", 2),
        (SYSTEM, "machine", 2),
        (JOB, "machine", 4),
        (LOGIN, "machine", 3),
        (SHARE, "processors", 2),
    ],
)
def test_a_varied_value_is_a_latent_cause(text: str, kind: str, line: int, tmp_path: Path) -> None:
    code, output = located(write_program(tmp_path, main=text), "--max-runs", "3")
    if kind != "completion" or output["interventions"]["verdict"] == "same":  # threads may well differ by themselves
        assert [(entry["kind"], entry["places"]) for entry in output["interventions"]["latent"]] == [
            (kind, [f"main.py:{line}"])
        ]
    assert code in (0, 1)


def test_runs_that_agree_by_the_hash_seed_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write_program(tmp_path, main="print({'a%d' % i for i in range(40)})")
    ran = subprocess.run(
        command("--json", "--max-runs", "3", "--", "main.py"),
        cwd=program,
        env={**environ(), "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
    )
    assert [entry["kind"] for entry in json.loads(ran.stdout)["interventions"]["latent"]] == ["hash-seed"]


@pytest.mark.parametrize(("order", "latent"), [("", [("listing", ["main.py:2"])]), ("sorted", [])])
def test_a_listing_that_differs_between_machines_is_a_latent_cause(
    order: str, latent: list[tuple[str, list[str]]], tmp_path: Path
) -> None:
    program = write_program(tmp_path, main=f"import os\nprint({order}(os.listdir('data')))")
    (program / "data").mkdir()
    for number in range(20):
        (program / "data" / f"part{number}").touch()
    code, output = located(program, "--max-runs", "3")
    assert (code, output["causes"]) == (0, [])
    assert [(entry["kind"], entry["places"]) for entry in output["interventions"]["latent"]] == latent
    assert "listing" in output["interventions"]["varied"]


def test_a_program_that_chooses_its_exit_code_is_searched(tmp_path: Path) -> None:
    _, output = located(write_program(tmp_path, main="print(hash('a'))\nraise SystemExit(3)"))
    assert places_of(output) == [("hash-seed", "main.py", 1)]
    assert "each run ended with exit code 3" in output["findings"]


@pytest.mark.parametrize(
    ("main", "message"),
    [
        ("import os\nraise SystemExit(3 if os.urandom(2) > b'\\x7f' else 4)", "not with"),
        ("import os, sys\nprint('Traceback (most recent call last)')\nos._exit(3)", "exit code 3 in run 1"),
        ("raise SystemExit(1)", "exit code 1 in run 1"),
        ("raise SystemExit(2)", "exit code 2 in run 1"),
    ],
)
def test_an_exit_code_of_an_error_or_of_some_runs_only_is_a_failure(main: str, message: str, tmp_path: Path) -> None:
    program = write_program(tmp_path, main=main)
    ran = subprocess.run(command("--max-runs", "12", "--", "main.py"), cwd=program, env=environ(),
                         capture_output=True, text=True)  # fmt: skip
    assert ran.returncode == 3 and message in ran.stderr


def test_a_program_that_fails_is_told_by_its_own_words(tmp_path: Path) -> None:
    program = write_program(tmp_path, main="raise SystemExit('no data')")
    ran = subprocess.run(command("--", "main.py"), cwd=program, env=environ(), capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "| no data" in ran.stderr


# The copy


def copy_of(folder: Path, sandbox: Path, monkeypatch: pytest.MonkeyPatch) -> ProgramCopy:
    monkeypatch.chdir(folder)
    sandbox.mkdir()
    return ProgramCopy(["main.py"], str(sandbox))


def test_a_copy_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write_program(tmp_path, main="pass")
    (program / "data").mkdir()
    (program / "data" / "kept").write_text("as it was")
    (program / "link").symlink_to("data/kept")
    copy = copy_of(program, tmp_path / "sandbox", monkeypatch)
    work = Path(copy.work)
    (work / "data" / "kept").write_text("changed")
    (work / "new").mkdir()
    (work / "new" / "file").write_text("new")
    assert sorted(map(copy.name_of, copy.changed())) == ["data/kept", "new/file"]
    copy.restore()
    assert copy.changed() == {}
    assert sorted(path.name for path in work.iterdir()) == ["data", "link", "main.py"]
    assert (work / "link").read_text() == "as it was"
    assert (program / "data" / "kept").read_text() == "as it was"


def test_a_virtual_environment_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write_program(tmp_path, main="pass")
    (program / ".venv").mkdir()
    (program / ".venv" / "pyvenv.cfg").write_text("")
    copy = copy_of(program, tmp_path / "sandbox", monkeypatch)
    assert (Path(copy.work) / ".venv").resolve() == program / ".venv"


def test_a_home_folder_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write_program(tmp_path, main="pass")
    monkeypatch.setenv("HOME", str(program))
    (program / "scripts").mkdir()
    (program / "scripts" / "main.py").write_text("pass")
    monkeypatch.chdir(program / "scripts")
    with pytest.raises(TooLargeError):
        ProgramCopy(["../main.py"], str(tmp_path / "sandbox"))


# Parts


@settings(max_examples=200, deadline=None)
@given(st.sets(st.integers(0, 11), min_size=1, max_size=3))
def test_ddmin_finds_the_parts_that_are_needed(needed: set[int]) -> None:
    tried: list[list[int]] = []

    def test(part: list[int]) -> bool:
        tried.append(part)
        return needed <= set(part)

    assert set(ddmin(list(range(12)), test)) == needed


FIXES = [
    ("addresses", "layers = set(model.children())", "layers = dict.fromkeys(model.children())"),
    ("addresses", "ordered = sorted(nodes, key=id)", "ordered = list(nodes)"),
    ("addresses", "nodes.sort(key=id)", "pass  # in the order in which they were added"),
    ("addresses", "random.seed(id(x) % 7)", "random.seed(0)"),
    ("hash-seed", "x = ','.join({c for n in names for c in n})", "x = ','.join(sorted({c for n in names for c in n}))"),
    ("hash-seed", "x = sorted(names, key=len)", "x = sorted(sorted(names), key=len)"),
    ("clock", "run = time.time_ns()\nrng = random.Random(run)", "run = 0\nrng = random.Random(run)"),
    ("clock", "run = now().isoformat()\nrng = random.Random(run)", "run = '0'\nrng = random.Random(run)"),
    ("hash-seed", "node = self.near.pop()", "node = min(self.near); self.near.remove(node)"),
    ("hash-seed", "x = list(set(words))", "x = list(sorted(set(words)))"),
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
    ("random", "n = uuid4().int", "n = __import__('uuid').UUID(int=0).int"),
    ("random", "n = int(secrets.token_hex(4), 16)", "n = int('00' * (4), 16)"),
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
    exec(source_fixes.with_tick_counter(changed), names)
    assert names["turns"] == 999


@pytest.mark.parametrize("kind", [kind.name for kind in kinds.ALL if kind.has_pin])
def test_every_kind_has_advice_and_a_documented_limit(kind: str) -> None:
    assert source_fixes.advice(kind)
    module = sys.modules[kinds.BY_NAME[kind].__module__]
    assert module.__doc__
    assert {"Pinned:", "annot be pinned:", "Example:"} <= {word for word in ("Pinned:", "annot be pinned:", "Example:")
                                                            if word in module.__doc__}  # fmt: skip


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
    assert "share nothing" in tasks and callbacks == source_fixes.advice("completion")


NO_FIXES = [
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


PLACES = [("a.py:3", ("a.py", 3)), ("a.py:3 (import)", ("a.py", 3)), ("-", ("", 0)), ("global:torch", ("", 0))]


@pytest.mark.parametrize(("place", "expected"), PLACES)
def test_a_place_is_split(place: str, expected: tuple[str, int]) -> None:
    assert split_place(place) == expected


# Bad input


def test_a_search_that_is_stopped_says_what_is_known(tmp_path: Path) -> None:
    program = write_program(tmp_path, main="import time\nprint(time.time())\ntime.sleep(0.1)")
    search = subprocess.Popen(command("--", "main.py"), cwd=program, env={**environ(), "TMPDIR": str(tmp_path)},
                              stderr=subprocess.PIPE, text=True, start_new_session=True)  # fmt: skip
    assert search.stderr is not None
    while "pinned" not in search.stderr.readline():
        assert search.poll() is None
    os.killpg(search.pid, signal.SIGINT)
    stderr = search.stderr.read()
    assert search.wait(timeout=60) == 130
    assert "so far: printed text: 3 runs without pins, 3 different ends" in stderr
    assert "Traceback" not in stderr
    assert [path.name for path in tmp_path.iterdir()] == ["program"], "a copy was left behind"


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    ran = subprocess.run(command("--", "nothing.py"), cwd=tmp_path, env=environ(), capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "nothing.py" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_folder_of_odd_files_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write_program(tmp_path, main="pass")
    os.mkfifo(program / "pipe")
    (program / "broken").symlink_to("nowhere")
    (program / "loop").symlink_to("loop")
    Path(os.fsdecode(os.path.join(os.fsencode(str(program)), b"\xff"))).write_text("odd")
    copy = copy_of(program, tmp_path / "sandbox", monkeypatch)
    assert os.fsdecode(b"\xff") in os.listdir(copy.work)
    copy.restore()
    assert copy.changed() == {}


def test_kept_traces_hold_no_copy_of_the_program(tmp_path: Path) -> None:
    program = write_program(tmp_path, main="print(1)")
    ran = subprocess.run(command("--keep-traces", "../kept", "--", "main.py"), cwd=program, env=environ(),
                         capture_output=True, text=True)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert not (tmp_path / "kept" / "copy").exists()


def test_a_pin_that_makes_the_program_wait_is_given_up(runner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    program = runner("import time\nbegun = time.time()\nwhile time.time() < begun + 0.2:\n    time.sleep(0.01)")
    monkeypatch.setattr(interposed_runs, "_SHORTEST_LIMIT", 1)
    monkeypatch.setattr(interposed_runs, "_PATIENCE", 1)
    assert program.runs.run(0).failed is None
    failed = program.runs.run(1, {"clock": None}).failed
    assert failed is not None and "did not end within" in failed.cause
    assert subprocess.run(["pgrep", "-f", program.copy.work], capture_output=True).returncode == 1


def test_a_script_below_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write_program(tmp_path, main="open('written', 'w').close()")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    copy = ProgramCopy(["program/main.py"], str(tmp_path / "sandbox"))
    assert copy.root == str(program)
    assert copy.program == [os.path.join(copy.work, "main.py")]


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


FUSING = """
import os, sys
from horovod.torch import mpi_ops

def total(numbers):
    return mpi_ops.allreduce_async(numbers)

print(total([1, 2]), total([3]))
"""
MPI_OPS = """
import os

def size():
    return {ranks}

def allreduce_async(numbers):  # as Horovod does, it asks the environment what to put together
    is_off = os.environ.get("HOROVOD_FUSION_THRESHOLD") == "0"
    return numbers, [] if is_off else os.read(os.open("/dev/urandom", os.O_RDONLY), 4)
"""


@pytest.fixture
def horovod(tmp_path: Path) -> Any:
    def program(ranks: int) -> Path:
        program_folder = write_program(tmp_path, main=FUSING, launch="import runpy, sys\nrunpy.run_path(sys.argv[1])")
        (program_folder / "horovod" / "torch").mkdir(parents=True)
        (program_folder / "horovod" / "torch" / "mpi_ops.py").write_text(MPI_OPS.format(ranks=ranks))
        return program_folder

    return program


def test_tensor_fusion_is_proved_and_switched_off(horovod: Any) -> None:
    code, output = located_words(horovod(3), "--fix", "--max-runs", "3", "--", "-m", "launch", "main.py")
    (cause,) = output["causes"]
    assert (code, cause["kind"], cause["fix"]["result"]) == (5, "tensor-fusion", "holds")
    assert [(place["file"], place["line"]) for place in cause["places"]] == [("main.py", 5)]
    assert '+os.environ["HOROVOD_FUSION_THRESHOLD"] = "0"  # before hvd.init()' in cause["fix"]["diff"]


def test_two_ranks_sum_alike_in_any_order(horovod: Any) -> None:
    code, output = located(horovod(2), "--max-runs", "3")
    assert (code, output["causes"], output["interventions"]["verdict"]) == (1, [], "not proved")


STARTS = """
import os, subprocess, sys
urandom = os.open("/dev/urandom", os.O_RDONLY)
ranks = sorted(["0", "1", "2"], key=lambda one: os.read(urandom, 4))
started = [subprocess.Popen([sys.executable, sys.argv[1]], env=dict(os.environ, RANK=one)) for one in ranks]
for one in started:
    one.wait()
"""
ONE_RANK = """
import os, random
number = 1.5 if os.environ["RANK"] != "2" else random.random()
with open("rank" + os.environ["RANK"], "w") as target:
    target.write(str(number))
"""


def test_a_rank_is_told_by_its_number_and_not_by_its_start(tmp_path: Path) -> None:
    program = write_program(tmp_path, launch=STARTS, main=ONE_RANK)
    code, output = located_words(program, "--fix", "--max-runs", "3", "--", "-m", "launch", "main.py")
    (cause,) = output["causes"]
    assert (code, cause["kind"], cause["fix"]["result"]) == (5, "random", "holds")
    assert [(place["file"], place["line"]) for place in cause["places"]] == [("main.py", 2)]
    assert cause["details"] == ["in rank 2 only, of 3 ranks"]


@pytest.mark.parametrize(
    ("launcher_variables", "position"),
    [
        ({}, "0"),
        ({"TFDET_POSITION": "0.2"}, "0.2"),
        ({"TFDET_POSITION": "0.2", "TFDET_PARENT_RANK": "", "RANK": "0"}, "rank0"),
        ({"TFDET_POSITION": "rank0.1", "TFDET_PARENT_RANK": "0", "RANK": "0"}, "rank0.1"),
    ],
)
def test_only_a_child_of_the_launcher_is_a_rank(
    launcher_variables: dict[str, str], position: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TF_CONFIG", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK", "SLURM_PROCID", "RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in launcher_variables.items():
        monkeypatch.setenv(name, value)
    assert variables.position() == position


@pytest.mark.parametrize(
    ("words", "argv"),
    [
        (["--", "main.py", "--", "1"], ["main.py", "--", "1"]),
        (["--", "python3.11", "main.py"], ["main.py"]),
        (["torchrun", "--standalone", "main.py"], ["-m", "torch.distributed.run", "--standalone", "main.py"]),
        (["--", "horovodrun", "-np", "4", "main.py"], ["-m", "horovod.runner.launch", "-np", "4", "main.py"]),
        (["-m", "package"], ["-m", "package"]),
        (["--"], []),
    ],
)  # fmt: skip
def test_python_runs_the_arguments_that_a_shell_would_pass(words: list[str], argv: list[str]) -> None:
    assert command_line.program_of(words) == argv


def test_a_file_of_the_users_is_no_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchrun").touch()
    assert command_line.program_of(["torchrun", "1"]) == ["torchrun", "1"]
