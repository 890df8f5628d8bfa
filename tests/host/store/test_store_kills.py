"""After a kill at any step the store is the old one or the new one, and the next run continues."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from signers import H100, Signer

from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.store.evidence import EvidenceStore
from tfdet.store.records import parse

Line = Callable[..., bytes]

# Forks a child for each step of `add` (a file opened, renamed, removed, a folder made, something synced), which is
# killed there, and says what a reader finds then, and after it was run again.
DRIVER = """
import json, os, shutil, signal, sys
from pathlib import Path
from tfdet.store.evidence import EvidenceStore
from tfdet.store.records import parse

class Attestation:
    def __init__(self, line, partition):
        self.line, self.partition = line, partition

folder, old, new = Path(sys.argv[1]), *(Path(name).read_bytes().splitlines(keepends=True) for name in sys.argv[2:4])
attestations = [Attestation(line, tuple(partition)) for line, partition in json.loads(Path(sys.argv[4]).read_text())]
WHAT = ("open", "os.rename", "os.remove", "os.mkdir", "shutil.rmtree")

def store():
    return EvidenceStore(folder / "evidence")

def add(lines, attestations):
    store().ingest([parse(line) for line in lines], attestations)

def state():
    found = store()
    files = {str(p.relative_to(folder)): "".join(record.line() for record in found.read(p)) for p in found.files()}
    more = {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.glob("signatures/*/*.jsonl"))}
    left = [str(p) for p in folder.rglob("*.part")] + [str(p) for p in folder.rglob(".commit*")]
    return {"files": files | more, "left": left}

def killed_at(step):
    done, synced = 0, os.fsync
    def look(event, arguments):
        if event == "fsync" or event in WHAT and str(folder) in str(arguments[0]):
            nonlocal done
            done += 1
            if done == step:
                os.kill(os.getpid(), signal.SIGKILL)
    def fsync(handle):
        look("fsync", ())
        synced(handle)
    os.fsync = fsync
    sys.addaudithook(look)
    add(new, attestations)

def fresh():
    shutil.rmtree(folder, ignore_errors=True)
    add(old, [])

def told(killed):
    first = state()
    add(new, attestations)
    return {"killed": killed, "first": first, "again": state()}

fresh()
before = state()
add(new, attestations)
print(json.dumps({"before": before, "after": state()}))
for step in range(1, 1000):
    fresh()
    if (child := os.fork()) == 0:
        killed_at(step)
        os._exit(0)
    killed = os.waitpid(child, 0)[1] == signal.SIGKILL
    print(json.dumps(told(killed)))
    if not killed:
        break
"""


def test_a_kill_at_any_step_leaves_the_old_or_the_new_store(
    tmp_path: Path, checkout: Project, record_line: Line
) -> None:
    old, new = (
        record_line(case="a", machine="a" * 12, **H100),
        record_line("differs", case="b", machine="b" * 12, **H100),
    )
    added_line = record_line(case="c", environment="tf2.1", version="2.1.0")
    lab = Signer("lab")
    (envelope,) = lab.sign(checkout, [parse(new)])
    inputs = [tmp_path / name for name in ("old", "new", "vouches")]
    inputs[0].write_bytes(old)
    inputs[1].write_bytes(new + added_line)
    # Envelopes, each with its partition: the device and environment whose file holds it.
    inputs[2].write_text(json.dumps([[envelope.strip(), ["nvidia-h100", "tf2.0"]]]))
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, tmp_path / "matrix", *inputs], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    outcome, *steps = map(json.loads, done.stdout.splitlines())
    assert len(outcome["after"]["files"]) == 3 and outcome["after"]["left"] == []
    assert [step["killed"] for step in steps] == [True] * (len(steps) - 1) + [False]
    assert len(steps) > 20, "as many steps have been killed"
    is_old_store = [step["first"] == outcome["before"] for step in steps]
    for step in steps:
        assert step["first"] in (outcome["before"], outcome["after"])
        assert step["again"] == outcome["after"]
    assert is_old_store == sorted(is_old_store, reverse=True) and True in is_old_store, (
        "one moment parts the old from the new"
    )


def test_a_removed_envelope_breaks_nothing(tmp_path: Path, checkout: Project, record_line: Line) -> None:
    """docs/how-to/sign-records.md advises it after a theft: the order of records is independent of signers."""
    store, lab, yard = EvidenceStore(tmp_path / "matrix" / "evidence"), Signer("lab"), Signer("yard")
    first, two, three = (parse(record_line(**H100, duration_seconds=seconds)) for seconds in (2.0, 3.0, 4.0))

    class Attestation:
        partition = ("nvidia-h100", "tf2.0")

        def __init__(self, line: str) -> None:
            self.line = line

    for signer, record in ((lab, first), (yard, two), (None, three)):
        attestations = [Attestation(text.strip()) for text in signer.sign(checkout, [record])] if signer else []
        store.ingest([record], attestations)  # type: ignore[arg-type]
    (path,) = store.files()
    assert len(list(store.read(path))) == 3
    envelopes = tmp_path / "matrix" / "signatures" / "nvidia-h100" / "tf2.0.intoto.jsonl"
    texts = envelopes.read_text().splitlines(keepends=True)
    for remaining in ([texts[0]], [texts[1]], [], texts[::-1]):
        envelopes.write_text("".join(remaining))
        assert len(list(store.read(path))) == 3


@pytest.mark.parametrize(
    "content", ["", "{", "[1]", '["../../etc/passwd"]', '["/etc/passwd"]', '["evidence/x"]', "[" * 9000]
)
def test_a_forged_commit_list_moves_no_file(tmp_path: Path, record_line: Line, content: str) -> None:
    store = EvidenceStore(tmp_path / "matrix" / "evidence")
    store.ingest([parse(record_line())])
    before = sorted(os.walk(tmp_path))
    (store.user_folder / ".commit.json").write_text(content)
    with pytest.raises(DataError, match=r"commit\.json: not a list of files"):
        store.files()
    (store.user_folder / ".commit.json").unlink()
    assert sorted(os.walk(tmp_path)) == before


def test_leftovers_of_dead_processes_are_removed(tmp_path: Path, record_line: Line) -> None:
    store = EvidenceStore(tmp_path / "matrix" / "evidence")
    store.ingest([parse(record_line())])
    leftovers = [store.user_folder / "cpu" / name for name in ("tf2.0.jsonl.part", "tf2.1.jsonl.4711.part")]
    for path in leftovers:
        path.write_bytes(b"x" * 1000)
    assert len(store.files()) == 1
    assert not any(path.exists() for path in leftovers)
