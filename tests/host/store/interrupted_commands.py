"""Interrupts commands at random moments: python interrupted_commands.py PROJECT RECORDS NUMBER SEED.

A moment is an audit event of Python: a file that is opened, renamed or removed, an import, a call of a library. Prints
lines of JSON: first {command: {before, after}}, the states of the store around a complete command; then for each of
NUMBER attempts {command, signal, moment, code, err, state, code_again, again}; again: after the command ran once more.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tfdet.base.paths import Project
from tfdet.cli.main import main
from tfdet.store import cases
from tfdet.store.evidence import EvidenceStore
from tfdet.store.signatures import bundle_path

PROJECT, RECORDS = Project(Path(sys.argv[1])), Path(sys.argv[2])
STORED = PROJECT.evidence / "nvidia-h100" / "tf2.0.jsonl"
UNSIGNED = RECORDS.with_name("unsigned.jsonl")
COMMANDS = {
    "add": ["evidence", "add", "--yes", str(RECORDS)],
    "sign a file": ["evidence", "sign", str(UNSIGNED)],
    "sign the store": ["evidence", "sign", str(STORED)],
}


def reset_store(command: str) -> None:
    """Remove what earlier commands left in the store, and put the unsigned records back."""
    for folder in (PROJECT.evidence, PROJECT.matrix / "signatures"):
        for path in [*folder.glob("*/*.jsonl"), *folder.rglob("*.part"), *folder.glob(".commit*")]:
            path.unlink()
    for path in UNSIGNED.parent.glob(f"{UNSIGNED.name}*"):
        path.unlink()
    shutil.copy(RECORDS, UNSIGNED)
    if command == "sign the store":
        STORED.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(RECORDS, STORED)


def store_state() -> dict[str, list[str]]:
    """Return the lines of all files of the store as it reads them, and of the envelopes; leftovers stand among them."""
    store = EvidenceStore.open(PROJECT)
    found = {str(path): [record.line() for record in store.read(path)] for path in store.files()}
    folder, bundle = PROJECT.matrix / "signatures", bundle_path(UNSIGNED)
    for path in [*folder.glob("*/*.jsonl"), *folder.rglob("*.part"), *PROJECT.evidence.rglob("*.part"),
                 *PROJECT.evidence.glob(".commit*"), *UNSIGNED.parent.glob("*.part"), bundle]:  # fmt: skip
        if path.exists():
            found[str(path)] = path.read_text("utf-8").splitlines(keepends=True)
    return found


def run(command: str, at_event: Callable[[str, tuple[Any, ...]], None]) -> tuple[int, str]:
    """Run the command in a child; return its exit code (negative: of a signal) and its errors."""
    with tempfile.TemporaryFile() as err:
        if (child := os.fork()) == 0:
            code = 99
            try:
                os.dup2(err.fileno(), 2)
                os.dup2(os.open(os.devnull, os.O_RDWR), 1)
                sys.argv = ["tfdet", *COMMANDS[command]]
                sys.addaudithook(at_event)
                main()
                code = 0
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else 0
            except KeyboardInterrupt:  # at the very end of the command, where Python itself would exit so
                code = 130
            finally:
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        err.seek(0)
        return os.waitstatus_to_exitcode(status), err.read().decode("utf-8", "replace")


def is_write(event: str, arguments: tuple[Any, ...]) -> bool:
    """Return whether the event changes a file of the project, or one beside the records."""
    if event not in ("open", "os.rename", "os.remove"):
        return False
    is_ours = str(arguments[0]).startswith((str(PROJECT.root), str(RECORDS.parent)))
    return is_ours and (event != "open" or bool(set("wax+") & set(str(arguments[1]))))


def list_moments(command: str) -> tuple[list[int], list[int]]:
    """Return the command's moments, of which every tenth is told, and those at which it writes."""
    moments, (reader, writer) = 0, os.pipe()

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal moments
        moments += 1
        if moments % 10 == 0 or is_write(event, arguments):
            os.write(writer, f"{moments} {is_write(event, arguments):d}\n".encode())

    reset_store(command)
    code, err = run(command, count)
    assert code == 0, err
    os.close(writer)
    with os.fdopen(reader) as source:
        told = [tuple(map(int, line.split())) for line in source]
    return [moment for moment, _ in told], [moment for moment, wrote in told if wrote]


def attempt(command: str, sent: signal.Signals, moment: int) -> dict[str, Any]:
    """Send the signal at that moment of the command; return the store's state then, and after the command ran again."""
    moments = 0

    def interrupt(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal moments
        moments += 1
        if moments == moment:
            os.kill(os.getpid(), sent)

    reset_store(command)
    code, err = run(command, interrupt)
    found = store_state()
    code_again, _ = run(command, lambda event, arguments: None)
    return {"command": command, "signal": sent.name, "moment": moment, "code": code, "err": err, "state": found,
            "code_again": code_again, "again": store_state()}  # fmt: skip


if __name__ == "__main__":
    cases.current_cases = cache(cases.current_cases)
    rng = random.Random(int(sys.argv[4]))
    outcomes, moments = {}, {}  # of each command
    for command in COMMANDS:  # what is imported and read once is so in this process, before moments are counted
        reset_store(command)
        store_state()
        run(command, lambda event, arguments: None)
        store_state()
    for command in COMMANDS:
        reset_store(command)
        before = store_state()
        moments[command] = list_moments(command)
        outcomes[command] = {"before": before, "after": store_state()}
    print(json.dumps(outcomes))
    for _ in range(int(sys.argv[3])):
        command = rng.choice(sorted(COMMANDS))
        told, writes = moments[command]
        near = rng.choice(writes) + rng.randint(-1, 2)  # where a file is written, half of the times
        moment = rng.choice([near, rng.randint(1, told[-1])])
        print(json.dumps(attempt(command, rng.choice([signal.SIGINT, signal.SIGKILL]), moment)))
