"""`pytest --tfdet`: does a user's own op, layer or model repeat itself?  Their functions, our records and verdicts.

Each module is run by the probe in a process of its own, as an environment's suite is; see docs/pytest.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tfdet.store.records import Record
    from tfdet.verdicts.infer import Cell

ENVIRONMENT = "here"
_RECORDS = pytest.StashKey[dict[Path, "list[Record]"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tfdet", "do ops repeat themselves?")
    group.addoption("--tfdet", action="store_true", help="run the @case functions of tfdet_probe")
    group.addoption("--tfdet-device", choices=["cpu", "gpu", "vgpu"], default="cpu", help="where they run (cpu)")
    group.addoption("--tfdet-solution", action="append", default=[], metavar="KEY", help="under this (again: several)")
    group.addoption("--tfdet-framework", metavar="NAME", help="default: that of what the module imports")
    group.addoption("--tfdet-repeats", type=int, default=10, metavar="N", help="in one process (10)")
    group.addoption("--tfdet-relaunches", type=int, default=2, metavar="N", help="fresh processes (2)")
    group.addoption("--tfdet-out", type=Path, metavar="FOLDER", help="keep the records here, a file a module")


def pytest_pycollect_makeitem(collector: pytest.Module, name: str, obj: object) -> list[pytest.Item] | None:
    """Nobody who did not ask for it waits for it."""
    if type(obj).__module__ != "tfdet_probe.core.registry" or type(obj).__name__ != "CaseFunction":
        return None
    if not collector.config.getoption("--tfdet"):
        return []
    solutions = collector.config.getoption("--tfdet-solution") or ["none"]
    return [
        Repeats.from_parent(collector, name=f"{name}[{solution}]", family=obj, solution=solution)
        for solution in solutions
    ]


class Repeats(pytest.Item):
    """One case function under one solution."""

    def __init__(self, *, family: Any, solution: str, **known: Any) -> None:
        super().__init__(**known)
        self._family = family
        self._solution = solution

    def runtest(self) -> None:
        mine = [record for record in _records(self.config, self.path) if record.case_hash == self._family.hash]
        for source, cell in _cells(mine, self._solution):
            text = f"{source} under {self._solution}: {cell.verdict}, {cell.differed} of {cell.runs} runs differed"
            self.add_report_section("call", "tfdet", text)
            if not _repeats_itself(cell):
                why = _why_not(cell, [r for r in mine if (r.source, r.solution) == (source, self._solution)])
                raise DoesNotRepeatItself(f"{text}{why}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from tfdet.base.errors import TfdetError

        if isinstance(excinfo.value, TfdetError):
            return f"{excinfo.value.cause}\n{excinfo.value.advice}"
        return str(excinfo.value) if isinstance(excinfo.value, DoesNotRepeatItself) else super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name


class DoesNotRepeatItself(Exception):
    pass


def _cells(records: list[Record], solution: str) -> Iterator[tuple[str, Cell]]:
    from tfdet.verdicts.glance import seen
    from tfdet.verdicts.infer import CellKey, Evidence

    hashes: dict[str, set[str]] = {}
    for record in records:
        hashes.setdefault(record.source, set()).add(record.case_hash)
    evidence = Evidence(hashes).extend(map(seen, records))
    keys = {CellKey(ENVIRONMENT, r.device.model, r.source, solution) for r in records if r.solution == solution}
    if not keys:
        raise DoesNotRepeatItself(f"nothing ran under {solution}")
    for key in sorted(keys):
        yield key.source, evidence.cell(key)


def _repeats_itself(cell: Cell) -> bool:
    from tfdet.verdicts.infer import Verdict

    return cell.verdict in (Verdict.DETERMINISTIC, Verdict.NOT_SHOWN, Verdict.TOO_FEW)


def _why_not(cell: Cell, records: list[Record]) -> str:
    """Empty where nothing is known: texts differ by no number."""
    from tfdet.verdicts.infer import Verdict

    if cell.verdict is Verdict.NONDETERMINISTIC:
        ulps = [record.max_ulp for record in records if record.max_ulp is not None]
        return f" (at most by {max(ulps)} ulp)" if ulps else ""
    errors = dict.fromkeys(f"{r.error.type}: {r.error.message}" for r in records if r.error)
    return "\n" + "\n".join(errors)


def _records(config: pytest.Config, module: Path) -> list[Record]:
    """Of all cases of a module, run once."""
    known = config.stash.setdefault(_RECORDS, {})
    if module not in known:
        known[module] = _run(config, module)
    return known[module]


def _run(config: pytest.Config, module: Path) -> list[Record]:
    from tempfile import TemporaryDirectory

    from tfdet.store.records import read_records

    with TemporaryDirectory(prefix="tfdet-") as folder:
        kept: Path = config.getoption("--tfdet-out") or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        plan, out = Path(folder, "plan.json"), kept / f"{module.stem}.jsonl"
        out.unlink(missing_ok=True)  # what the module imports may have changed: nothing is gone on with
        plan.write_text(json.dumps(_plan(config, module)), "utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "tfdet_probe", "--plan", str(plan), "--suite", str(module), "--out", str(out),
             "--device", config.getoption("--tfdet-device"), "--repeats", str(config.getoption("--tfdet-repeats")),
             "--relaunches", str(config.getoption("--tfdet-relaunches"))],
            env=_environ(config), cwd=config.rootpath, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode not in (0, 1, 3) or not out.exists() or not out.stat().st_size:
            raise DoesNotRepeatItself(f"the suite did not run here: {(done.stderr or done.stdout).strip()[-2000:]}")
        return list(read_records(out))


def _plan(config: pytest.Config, module: Path) -> dict[str, Any]:
    """The module's sources under the solutions asked for, and the control."""
    from tfdet.cli.app import load
    from tfdet_probe.core import meaning
    from tfdet_probe.core.plan import SCHEMA

    _, matrix = load()
    packages = {key: one.package for key, one in matrix.frameworks.items()}
    framework = config.getoption("--tfdet-framework") or next(
        (key for key, package in packages.items() if package in sys.modules), None
    )
    if framework is None:
        raise DoesNotRepeatItself(f"{module.name} imports no framework: name one by --tfdet-framework")
    keys = dict.fromkeys(["none", *config.getoption("--tfdet-solution")])
    applied = {key: matrix.solution(key).apply for key in keys}
    sources = {case.source for case in meaning.of_cases(module.read_text("utf-8")).values()}
    device = config.getoption("--tfdet-device")
    return {
        "schema": SCHEMA, "environment": ENVIRONMENT, "framework": framework,
        "determinism_variables": matrix.determinism_variables,
        "solutions": [{"key": key, **apply.model_dump(exclude_none=True)} for key, apply in applied.items() if apply],
        "cells": [{"device": device, "source": source, "solution": key, "expect": None, "may_fail": None}
                  for source in sorted(sources) for key in keys],
    }  # fmt: skip


def _environ(config: pytest.Config) -> dict[str, str]:
    """What the module could import here it can import there."""
    from tfdet.base.paths import find_project
    from tfdet.engines import vgpu
    from tfdet_common import virtual_gpu
    from tfdet_common.machine import machine_name

    project = find_project()
    found = {**os.environ, "TFDET_ENGINE": "venv", "TFDET_MACHINE": machine_name()}
    found["PYTHONPATH"] = os.pathsep.join([str(project.runtime), *filter(None, sys.path)])
    if config.getoption("--tfdet-device") == "vgpu":
        found[virtual_gpu.FOLDER] = str(vgpu.library(project))
    return found
