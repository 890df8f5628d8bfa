"""A small project with a store, and the commands that a mutant meets there, called in this process."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from copies import ROOT
from record_oracle import Facts
from site_builder import small_project

from tfdet.base.paths import Project
from tfdet.cli.main import main
from tfdet.matrix import load
from tfdet.store import cases, evidence
from tfdet.verdicts import status_loading

# Of these records some are in the store, and all are changed: each kind of device, framework and observation.
PARTITIONS = ("cpu/tf2.0", "cpu/tf2.8", "cpu/tf2.21", "cpu/tf2.0-horovod", "cpu/torch2.13", "vgpu-sm70/tf2.0",
              "nvidia-h100-80gb-hbm3/tf2.21")  # fmt: skip
MORE_ENVIRONMENTS = ("tensorflow/tf2.0-horovod", "tensorflow/tf1.14", "jax/jax0.11")
Cells = dict[tuple[str, str, str, str], dict[str, Any]]  # by environment, device, source and solution


class Done(NamedTuple):
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class FuzzedStore:
    """genuine: valid records, of which mutants are made; stored: the files that `restore` brings back."""

    project: Project
    genuine: list[dict[str, Any]]
    facts: Facts
    stored: Mapping[Path, bytes]

    def files(self) -> dict[Path, bytes]:
        """Return what the store consists of: records, envelopes, and what a transaction leaves."""
        folders = (self.project.evidence, self.project.matrix / "signatures")
        paths = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        return {path: path.read_bytes() for path in paths if path.name != ".store.lock"}

    def restore(self) -> None:
        for path in self.files().keys() - self.stored.keys():
            path.unlink()
        for path, content in self.stored.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def cells(self) -> Cells:
        """Return the cells as `tfdet status --json` prints them; 1 tells of contradictions, and is no failure."""
        done = call("status", "--json")
        assert done.code in (0, 1) and "Traceback" not in done.err, done.err
        rows = json.loads(done.out)["cells"]
        return {(row["environment"], row["device"], row["source"], row["solution"]): row for row in rows}

    def takes(self, path: Path, named: str, check: Callable[[], None]) -> bool:
        """Add a file; return whether it was taken.  AssertionError if either was not done rightly.

        named: how the error of a refusal names the file; check(): of the store with the file.
        """
        done = call("evidence", "add", "--yes", path)
        assert "Traceback" not in done.err, done.err
        if done.code:
            assert done.code == 2 and named in done.err, done.err
            assert self.files() == self.stored
            return False
        try:
            check()
            files, again = self.files(), call("evidence", "add", path)
            assert (again.code, self.files() == files) == (0, True), again.err
            assert "0 records added, 0 replaced" in again.err, again.err
        finally:
            self.restore()
        return True

    def check_together(self, files: Iterable[Path]) -> None:
        """Add files one after another; every command that reads the store can read it then."""
        recipes = [["recipe", name.partition("/")[2]] for name in PARTITIONS]
        try:
            adds: list[list[str | Path]] = [["evidence", "add", "--yes", path] for path in files]
            for arguments in [*adds, *recipes, ["site", "--out", self.project.root / "site"]]:
                done = call(*arguments)
                assert (done.code, "Traceback" in done.err) == (0, False), (arguments, done.err[-2000:])
            self.cells()
        finally:
            self.restore()


def call(*arguments: str | Path) -> Done:
    """Call the command in this process, as its script does."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["tfdet", *map(str, arguments)])
        patch.setattr(sys, "stdin", io.StringIO())
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    return Done(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def opened(root: Path, prepare: Callable[[Project], object] = lambda project: None) -> Iterator[FuzzedStore]:
    """Make the store in a folder; the commands that are called meanwhile read its matrix and suite once.

    prepare: adds keys and envelopes to the project.
    """
    project = small_project(root)
    shutil.rmtree(project.evidence)
    for name in MORE_ENVIRONMENTS:
        path = project.matrix / "environments" / f"{name}.toml"
        path.parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "matrix" / "environments" / f"{name}.toml", path)
    genuine = []
    for name in PARTITIONS:
        lines = (ROOT / "matrix" / "evidence" / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
        chosen = list(_one_of_each(lines))
        genuine += [json.loads(line) for line in chosen]
        sources = {json.loads(line)["source"] for line in chosen}
        # Every other genuine record is not stored, so that adding it is tested, too.
        stored = [line for line in lines if json.loads(line)["source"] in sources and line not in chosen[::2]]
        path = project.evidence / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(stored))
    shutil.copy(ROOT / "matrix" / "evidence" / "earlier-hashes.json", project.evidence)
    prepare(project)
    with pytest.MonkeyPatch.context() as patch, _kept_signals():
        patch.setenv("TFDET_ROOT", str(root))
        patch.setenv("XDG_CONFIG_HOME", str(root / "config"))
        patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
        for module in (load, evidence, status_loading):
            patch.setattr(module, "load_matrix", cache(module.load_matrix))
        for module in (cases, evidence, status_loading):
            patch.setattr(module, "current_cases", cache(module.current_cases))
        store = FuzzedStore(project, genuine, Facts.of(ROOT / "matrix"), {})
        yield FuzzedStore(project, genuine, store.facts, store.files())


def _one_of_each(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the first record of each observation, mode and form."""
    seen = set()
    for line in lines:
        record = json.loads(line)
        form = (record["observation"], record["mode"], record["solution"] == "none", *sorted(record))
        if form not in seen:
            seen.add(form)
            yield line


@contextlib.contextmanager
def _kept_signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGPIPE)
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, before)
