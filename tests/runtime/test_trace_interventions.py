"""Causes proved by interventions: what each pin removes, the search, the copied folder, the fix.

A pin gives a program the same value in every run, for one kind of nondeterminism, such as "completion": the order in
which threads and tasks end. A kind that is varied gets other values, such as another host name ("machine").
The programs need no framework: what they print or write is compared. `locate` exits with 0 if runs agree, 1 if they
differ, 3 if the program fails, 5 if a fix holds. Its answer lists as `latent` what another machine may get otherwise,
though these runs agree, and as `noted` what was neither varied nor pinned.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import pytest
import weekly
from interposed_programs import command, environ, located, places_of, write_program

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
print(os.read(os.open("/proc/sys/kernel/random/uuid", 0), 36))
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


@weekly.on_day(1, days=2)
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
import os, json, subprocess, tempfile
print(os.environ.get("DATA_DIR"), os.getenv("JOB_ID") and 1, "LANG" in os.environ, tempfile.gettempdir() and 1)
def everything():
    return dict(os.environ)
everything()
subprocess.run(["true"])
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
        "NOT_SET at main.py:8",
        "all variables at main.py:4",
        "run true at main.py:6",
    ]
    assert "machine" in output["interventions"]["varied"]


def test_inputs_without_a_pin_are_noted(tmp_path: Path) -> None:
    text = """
import os, socket, subprocess
try:
    socket.create_connection(("127.0.0.1", 9), timeout=5)
except OSError:
    pass
print(os.read(os.open("/proc/sys/kernel/random/uuid", 0), 36), subprocess.call(["date", "+%N"]))
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
print(os.read(os.open("/proc/sys/kernel/random/uuid", 0), 36))
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


def test_a_thread_that_runs_freely_is_the_cause(tmp_path: Path) -> None:
    """No order of starts reaches it; a queue's worker beside it is not accused."""
    text = """
import queue, threading
tasks, done, count = queue.Queue(), [], [0]
def serve():
    while True:
        done.append(tasks.get())
        tasks.task_done()
def spin():
    while True:
        count[0] += 1
threading.Thread(target=serve, daemon=True).start()
threading.Thread(target=spin, daemon=True).start()
for number in range(5):
    tasks.put(number)
tasks.join()
print(done, count)
"""
    code, output = located(write_program(tmp_path, main=text))
    assert (code, places_of(output)) == (1, [("background-thread", "main.py", 11)])


def test_the_fix_of_what_the_system_answers(tmp_path: Path) -> None:
    text = """
import random, subprocess
def number():
    return subprocess.check_output(["date", "+%N"], text=True).strip()
random.seed(number())
print(random.random())
"""
    code, output = located(write_program(tmp_path, main=text), "--fix")
    assert (code, places_of(output)) == (5, [("system", "main.py", 3)])
    fix = output["causes"][0]["fix"]
    assert (fix["result"], [line for line in fix["diff"] if line[:2] == "+ "]) == ("holds", ["+    return '0'"])


SETS_OF_SETS = """
found = {frozenset((a, b)) for a in "uvwxyz" for b in "uvwxyz"}
print([sorted(one) for one in found])
"""


def test_the_fix_of_a_set_of_sets_sorts_each(tmp_path: Path) -> None:
    """Sets are ordered by their subsets alone, and their texts by the hash seed."""
    code, output = located(write_program(tmp_path, main=SETS_OF_SETS), "--fix")
    assert (code, places_of(output)) == (5, [("hash-seed", "main.py", 2)])
    new_lines = [line for line in output["causes"][0]["fix"]["diff"] if line.startswith("+print")]
    assert new_lines == ["+print([sorted(one) for one in sorted(found, key=sorted)])"]


ORDER_BY_HASH = """
class Node:
    def __init__(self, name):
        self.name = name
nodes = [Node(n) for n in range(40)]
nodes.sort(key=lambda node: hash(node) % 101)
with open("order.txt", "w") as target:
    target.write(" ".join(str(node.name) for node in nodes))
"""


def test_a_file_that_is_only_written_is_no_cause(tmp_path: Path) -> None:
    """It changes the listing of the folder, and by that addresses."""
    code, output = located(write_program(tmp_path, main=ORDER_BY_HASH))
    assert (code, places_of(output)) == (1, [("addresses", "main.py", 5)])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    hidden = ORDER_BY_HASH.replace("nodes.sort", "by = hash\nnodes.sort").replace("hash(node)", "by(node)")
    code, output = located(write_program(elsewhere, main=hidden))
    assert (code, [cause["kind"] for cause in output["causes"]]) == (1, ["addresses"])


def test_progress_on_standard_error_is_no_result(tmp_path: Path) -> None:
    text = "import os, sys\nprint(os.urandom(4), file=sys.stderr)\n"
    code, output = located(write_program(tmp_path, main=text + "open('result', 'w').write('same')"))
    found = output["interventions"]
    assert (code, found["verdict"], found["compared"]) == (0, "same", "written files")
    assert found["also_differ"] == ["text on standard error"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    code, output = located(write_program(elsewhere, main=text))
    assert (code, output["interventions"]["compared"]) == (1, "text on standard error")


def test_a_timer_is_no_race_of_threads(tmp_path: Path) -> None:
    """To wait for it would let the program do nothing, and its runs agree."""
    text = """
import threading
done = threading.Event()
timer = threading.Timer(0.05, done.set)
timer.start()
steps = 0
while not done.is_set():
    steps += 1
print(steps)
"""
    code, output = located(write_program(tmp_path, main=text))
    assert (code, output["causes"], output["interventions"]["noted"]) == (1, [], ["Timer at main.py:3"])


def test_timers_are_noted(tmp_path: Path) -> None:
    _, output = located(write_program(tmp_path, main=TIMERS))
    assert output["interventions"]["noted"] == [
        "Timer at main.py:7",
        "read /proc/sys/kernel/random/uuid at main.py:8",
    ]


def test_timers_of_signals_are_noted_of_a_program_that_agrees(tmp_path: Path) -> None:
    """They have a pin, and are not varied."""
    _, output = located(write_program(tmp_path, main=TIMERS.replace("print(os.read(", "(os.read(")))
    assert output["interventions"]["verdict"] == "same"
    assert {"alarm at main.py:6", "setitimer at main.py:3"} <= set(output["interventions"]["noted"])


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


def test_each_line_that_draws_from_an_unseeded_generator_is_named(tmp_path: Path) -> None:
    text = """
import random, time
time.sleep(random.random() / 1000)
order = list(range(30))
random.shuffle(order)
print(order)
"""
    code, output = located(write_program(tmp_path, main=text))
    assert (code, places_of(output)) == (1, [("random", "main.py", 2)])
    (detail,) = output["causes"][0]["details"]
    assert "main.py:4" in detail


def test_a_set_of_objects_without_values_is_pinned_at_its_line(tmp_path: Path) -> None:
    """They are sorted by their age, because nothing else tells them apart but their addresses."""
    text = """
class Item:
    pass

items = [Item() for _ in range(40)]
junk = [bytearray(number) for number in range(200)]
print([items.index(item) for item in set(items)])
"""
    code, output = located(write_program(tmp_path, main=text))
    assert (code, places_of(output)) == (1, [("addresses", "main.py", 6)])


def test_a_process_without_a_file_is_placed_where_it_is_started(tmp_path: Path) -> None:
    """To seed the generator in the program itself would not help."""
    text = """
import subprocess, sys
CODE = "import random; print(random.random())"
subprocess.run([sys.executable, "-c", CODE])
"""
    code, output = located(write_program(tmp_path, main=text))
    assert (code, places_of(output)) == (1, [("random", "main.py", 3)])
    assert output["causes"][0]["fix"]["diff"] == []


def test_a_temporary_name_that_is_pinned_is_free_in_each_run(tmp_path: Path) -> None:
    """The search keeps files between runs: without more, a second run with the same names would take others."""
    program = write_program(tmp_path, main="import tempfile\nprint(tempfile.mkdtemp()[-8:])")
    code, output = located(program)
    assert (code, places_of(output)) == (1, [("random", "main.py", 2)])


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
        # Runs end with 3 and 4 in turns: the folder in which runs are counted is not the program's.
        (
            "import os, tempfile\nruns = os.environ['RUNS']\ntempfile.mkstemp(dir=runs)\n"
            "raise SystemExit(3 + len(os.listdir(runs)) % 2)",
            "not with",
        ),
        ("import os, sys\nprint('Traceback (most recent call last)')\nos._exit(3)", "exit code 3 in run 1"),
        ("raise SystemExit(1)", "exit code 1 in run 1"),
        ("raise SystemExit(2)", "exit code 2 in run 1"),
    ],
)
def test_an_exit_code_of_an_error_or_of_some_runs_only_is_a_failure(main: str, message: str, tmp_path: Path) -> None:
    runs, program = tmp_path / "runs", write_program(tmp_path, main=main)
    runs.mkdir()
    variables = {**environ(), "RUNS": str(runs)}
    ran = subprocess.run(command("--max-runs", "12", "--", "main.py"), cwd=program, env=variables,
                         capture_output=True, text=True)  # fmt: skip
    assert ran.returncode == 3 and message in ran.stderr


def test_a_program_that_fails_is_told_by_its_own_words(tmp_path: Path) -> None:
    program = write_program(tmp_path, main="raise SystemExit('no data')")
    ran = subprocess.run(command("--", "main.py"), cwd=program, env=environ(), capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "| no data" in ran.stderr


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


def test_kept_traces_hold_no_copy_of_the_program(tmp_path: Path) -> None:
    program = write_program(tmp_path, main="print(1)")
    ran = subprocess.run(command("--keep-traces", "../kept", "--", "main.py"), cwd=program, env=environ(),
                         capture_output=True, text=True)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert not (tmp_path / "kept" / "copy").exists()


SHELL = """
import subprocess
subprocess.run(["sh", "-c", "seq 1 100 | shuf > rows.txt"], check=True)
print(open("rows.txt").read().split()[:9])
"""


def test_a_program_that_no_pin_reaches_is_named_and_costs_few_runs(tmp_path: Path) -> None:
    program = write_program(tmp_path, main=SHELL)
    code, output = located(program)
    interventions = output["interventions"]
    assert (code, output["causes"], interventions["verdict"]) == (1, [], "not proved")
    assert interventions["total_runs"] <= 9
    assert output["verdict"].endswith(
        "Not examined, because no pin reaches it, is what enters at: run seq 1 100 | shuf > rows.txt at main.py:2."
    )


POLL = """
import os, time
begun = time.time()
with open("log", "w") as log:
    log.write(str(os.urandom(2)))
while os.stat("log").st_mtime < begun - 9:
    time.sleep(0.01)
print(open("log").read())
"""


def test_what_is_in_a_new_file_is_settled_before_its_time(tmp_path: Path) -> None:
    """A file that the run wrote always has another time; while that is pinned, the program does not end."""
    program = write_program(tmp_path, main=POLL)
    code, output = located(program)
    assert (code, places_of(output)) == (1, [("random", "main.py", 4)])
    assert not [line for line in output["interventions"]["tried"] if line.startswith("mtime")]
