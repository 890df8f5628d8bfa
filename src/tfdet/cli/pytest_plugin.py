"""`pytest --tfdet`: test whether a user's own op, layer or model is reproducible, with tfdet's records and verdicts.

The probe runs each module in a process of its own, like an environment's suite (docs/how-to/test-your-own-op.md).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from inspect import unwrap
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import TYPE_CHECKING, Any
from unittest import TestCase

import pytest

from tfdet_common.defaults import MAX_COUNT, RUN_DEFAULTS
from tfdet_common.virtual_gpu import SCHEDULES, is_schedule

if TYPE_CHECKING:
    from tfdet.matrix.load import Matrix
    from tfdet.store.records import Record
    from tfdet.verdicts.infer import InferredCell

ENVIRONMENT = "here"
_RECORDS = pytest.StashKey[dict[Path, "list[Record]"]]()
_SHARED = pytest.StashKey[Path]()  # the folder of a session's records, known to all its processes
_WRAPPED = "write @case above all other decorators; pytest's marks alone may stand above it"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tfdet", "reproducibility of ops")
    group.addoption("--tfdet", action="store_true", help="run the @case functions of tfdet_probe")
    group.addoption(
        "--tfdet-device", choices=["cpu", "gpu", "vgpu"], default="cpu", help="device that cases run on (default: cpu)"
    )
    group.addoption(
        "--tfdet-prove",
        "--prove",
        action="store_true",
        help="pass only if it is proved that no order of execution gives other bytes (on the virtual GPU, one run)",
    )
    group.addoption(
        "--tfdet-solution",
        action="append",
        default=[],
        metavar="KEY",
        help="solution to run under (repeatable; default: none)",
    )
    group.addoption(
        "--tfdet-schedules",
        type=_count,
        metavar="N",
        help="run under N schedules of the vgpu, in one process, instead of repeats and processes",
    )
    group.addoption(
        "--tfdet-schedule",
        action="append",
        default=[],
        metavar="NAME",
        help="run under this schedule of the vgpu, such as random:4, which a failure has named (repeatable)",
    )
    group.addoption(
        "--tfdet-cpu-fallbacks",
        action="store_true",
        help="on the vgpu, compute calls of cuBLAS and cuDNN on the CPU: never evidence about NVIDIA's libraries",
    )
    group.addoption("--tfdet-framework", metavar="NAME", help="framework (default: the one that the module imports)")
    group.addoption(
        "--tfdet-repeats", type=int, default=10, metavar="N", help="repeats of a case in one process (default: 10)"
    )
    group.addoption("--tfdet-processes", type=int, default=2, metavar="N", help="fresh processes per case (default: 2)")
    group.addoption(
        "--tfdet-timeout",
        type=float,
        default=RUN_DEFAULTS.seconds,
        metavar="SECONDS",
        help=f"time limit of each process of a case (default: {RUN_DEFAULTS.seconds:g})",
    )
    group.addoption("--tfdet-out", type=Path, metavar="FOLDER", help="write the records to FOLDER, one file per module")


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--tfdet"):
        return
    _set_runs(config)
    shared = getattr(config, "workerinput", {}).get("tfdet")
    if config.getoption("--tfdet-device") == "vgpu" and not config.option.collectonly:
        _preload_virtual_gpu()
    if shared is None:
        _check_out(config)
        made = TemporaryDirectory(prefix="tfdet-", ignore_cleanup_errors=True)
        config.add_cleanup(made.cleanup)
        shared = made.name
    config.stash[_SHARED] = Path(shared)


def _count(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= MAX_COUNT:
        raise argparse.ArgumentTypeError(f"{text} is not a number of schedules, from 1 to {MAX_COUNT}")
    return int(text)


def _set_runs(config: pytest.Config) -> None:
    """How often, and where, by the options that say it in other words."""
    option = config.option
    if option.tfdet_prove:
        option.tfdet_device, option.tfdet_repeats, option.tfdet_processes = "vgpu", 1, 1
    number = len(option.tfdet_schedule) or option.tfdet_schedules
    if option.tfdet_device != "vgpu" and (number or option.tfdet_cpu_fallbacks):
        word = "--tfdet-schedule" if number else "--tfdet-cpu-fallbacks"
        raise pytest.UsageError(f"{word} requires --tfdet-device vgpu")
    if unknown := [one for one in option.tfdet_schedule if not is_schedule(one)]:
        raise pytest.UsageError(f"--tfdet-schedule {unknown[0]}: schedule not found. Schedules: {SCHEDULES}")
    if number:
        option.tfdet_repeats, option.tfdet_processes = number, 1


def _preload_virtual_gpu() -> None:
    """Test modules import their framework in this process, too: PyTorch does not start without CUDA's libraries."""
    from tfdet.base.errors import TfdetError
    from tfdet.base.paths import find_project
    from tfdet.engines import vgpu

    try:
        vgpu.preload(vgpu.library_folder(find_project()))
    except TfdetError as error:
        raise pytest.UsageError(f"--tfdet-device vgpu: {error.cause}. {error.advice}") from error


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Of pytest-xdist: before a worker starts."""
    if _SHARED in node.config.stash:
        node.workerinput["tfdet"] = str(node.config.stash[_SHARED])


def _check_out(config: pytest.Config) -> None:
    out = _records_folder(config)
    if out is None or config.option.collectonly:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=out):
            pass
    except OSError as error:
        where = config.getoption("--tfdet-out")
        raise pytest.UsageError(
            f"--tfdet-out {where}: {error.strerror}. Pass a folder that you may write to."
        ) from error


def _records_folder(config: pytest.Config) -> Path | None:
    out: Path | None = config.getoption("--tfdet-out")
    return out and config.invocation_params.dir / out


def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> list[pytest.Item] | None:
    """Collect case functions; without --tfdet at no cost."""
    asked = collector.config.getoption("--tfdet")
    if asked and isinstance(obj, type) and issubclass(obj, TestCase):
        _warn_of_methods(collector, obj)
    family = unwrap(obj, stop=_is_case) if isinstance(obj, FunctionType) else obj
    if not _is_case(family):
        return None
    if not asked:
        return []
    solutions = collector.config.getoption("--tfdet-solution") or ["none"]
    fault = family.fault if family is obj else f"{name}: {_WRAPPED}"  # type: ignore[attr-defined]
    return [
        RepeatItem.from_parent(collector, name=f"{name}[{solution}]", family=family, solution=solution, fault=fault)
        for solution in solutions
    ]


def _is_case(obj: object) -> bool:
    """Return whether `obj` is a case function, without importing tfdet_probe."""
    return type(obj).__module__ == "tfdet_probe.core.registry" and type(obj).__name__ == "CaseFunction"


def _unwrapped(family: Any) -> Any:
    return _unwrapped(family.function) if _is_case(family) else family


def _warn_of_methods(collector: pytest.Collector, tests: type[TestCase]) -> None:
    """Warn of cases that are methods: unittest collects its classes itself."""
    for name in sorted(name for name, value in vars(tests).items() if _is_case(value)):
        collector.warn(pytest.PytestCollectionWarning(f"{tests.__name__}.{name} is not run: write it as a function"))


class RepeatItem(pytest.Item):
    """One case function under one solution. fault: why it cannot be run, or None."""

    def __init__(self, *, family: Any, solution: str, fault: str | None, **known: Any) -> None:
        # Explicit: pytest 9.2 parses a name only if it is the whole node ID.
        super().__init__(**known, nodeid=f"{known['parent'].nodeid}::{known['name']}")
        self.obj = unwrap(_unwrapped(family))  # whose globals the conditions of marks may use
        self.fault = fault
        self.family = family
        self._solution = solution
        self.own_markers.extend(family.pytestmark)
        self.keywords.update((mark.name, mark) for mark in family.pytestmark)

    def runtest(self) -> None:
        if self.fault:
            raise NotReproducibleError(self.fault)
        mine = [record for record in _records(self) if record.case_hash == self.family.hash]
        if not mine:
            raise NotReproducibleError(_no_records_reason(self))
        for source, cell in _cells(mine, self._solution):
            records = [r for r in mine if (r.source, r.solution) == (source, self._solution)]
            text = f"{source} under {self._solution}: {cell.verdict}, {cell.differed} of {cell.runs} runs differed"
            self.add_report_section("call", "tfdet", f"{text}{_fallback_text(records)}")
            if not _is_reproducible(cell, self.config.getoption("--tfdet-prove")):
                raise NotReproducibleError(f"{text}{_failure_detail(cell, records)}{self._where(cell, records)}")

    def _where(self, cell: InferredCell, records: list[Record]) -> str:
        """Where it differs, on a device that can repeat the run that did: the op, the line, how to replay it."""
        from tfdet.cli import pytest_locate
        from tfdet.verdicts.infer import Verdict

        if cell.verdict is not Verdict.NONDETERMINISTIC or self.config.getoption("--tfdet-device") != "vgpu":
            return ""
        module = self.getparent(pytest.Module)
        assert module
        replay = pytest_locate.Replay(self.nodeid, self._solution, self.config.getoption("--tfdet-cpu-fallbacks"))
        plan = _plan(self, {record.source for record in records})
        run = pytest_locate.CaseRun(module.obj.__name__, self.path, plan, self._solution, _environ(self.config),
                                    self.config.rootpath, self.config.getoption("--tfdet-timeout"))  # fmt: skip
        return "".join(f"\n{line}" for line in pytest_locate.explain(records, run, replay))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from tfdet.base.errors import TfdetError

        if isinstance(excinfo.value, TfdetError):
            return f"{excinfo.value.cause}\n{excinfo.value.advice}"
        return str(excinfo.value) if isinstance(excinfo.value, NotReproducibleError) else super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        code = getattr(self.obj, "__code__", None)
        return self.path, code.co_firstlineno - 1 if code else 0, self.name


class NotReproducibleError(Exception):
    pass


def _cells(records: list[Record], solution: str) -> Iterator[tuple[str, InferredCell]]:
    from tfdet.store.fast_records import summarize
    from tfdet.verdicts.infer import CellKey, EvidenceIndex

    hashes: dict[str, set[str]] = {}
    for record in records:
        hashes.setdefault(record.source, set()).add(record.case_hash)
    evidence = EvidenceIndex(hashes).extend(map(summarize, records))
    keys = {CellKey(ENVIRONMENT, r.device.model, r.source, solution) for r in records if r.solution == solution}
    if not keys:
        raise NotReproducibleError(f"nothing ran under {solution}")
    for key in sorted(keys):
        yield key.source, evidence.cell(key)


def _is_reproducible(cell: InferredCell, proves: bool) -> bool:
    from tfdet.verdicts.infer import EQUAL_VERDICTS, Verdict

    return cell.verdict is Verdict.SCHEDULE_INDEPENDENT if proves else cell.verdict in EQUAL_VERDICTS


def _proof_text(records: list[Record]) -> str:
    """What the proofs say, kernel by kernel."""
    from tfdet.publish import proof_views

    return "\n".join(proof_views.explain(records)).strip()


def _fallback_text(records: list[Record]) -> str:
    """What no library of NVIDIA's computed, and so says nothing about one; empty if nothing was."""
    details = [(record.device.details or {}).get("cpu_fallbacks") for record in records]
    calls = sorted({call for called in details if isinstance(called, list) for call in called})
    return f"\ncomputed by CPU fallbacks, so not evidence about NVIDIA's library: {', '.join(calls)}" if calls else ""


def _failure_detail(cell: InferredCell, records: list[Record]) -> str:
    """Return the largest difference or the errors; empty if unknown (texts have no numeric difference)."""
    from tfdet.verdicts.infer import EQUAL_VERDICTS, Verdict

    if cell.verdict in EQUAL_VERDICTS:
        return f"\n{_proof_text(records)}"
    if cell.verdict is Verdict.NONDETERMINISTIC:
        ulps = [record.max_ulp for record in records if record.max_ulp is not None]
        return f" (at most by {max(ulps)} ulp)" if ulps else ""
    errors = dict.fromkeys(f"{r.error.type}: {r.error.message}" for r in records if r.error)
    return "\n" + "\n".join(errors)


def _records(item: RepeatItem) -> list[Record]:
    """Return the records of all cases of the item's module, run once per session."""
    from tfdet.cli.pytest_records import ModuleRun, records_path, run_once
    from tfdet_probe.core.registry import case_key

    config, module = item.config, item.path
    known = config.stash.setdefault(_RECORDS, {})
    if module not in known:
        passed = ("device", "repeats", "processes", "timeout")
        arguments = [f"--{name}={config.getoption(f'--tfdet-{name}')}" for name in passed]
        arguments += [f"--schedule={one}" for one in config.getoption("--tfdet-schedule")]
        arguments += ["--cpu-fallbacks"] * config.getoption("--tfdet-cpu-fallbacks")
        families = [one.family for one in item.session.items if isinstance(one, RepeatItem) and _is_to_run(one, module)]
        arguments += ["--suite", str(module), *(f"--case={case_key(one.__name__, [], '*')}" for one in families)]
        arguments += ["--prove"] * config.getoption("--tfdet-prove")
        if config.getoption("importmode") == "importlib":
            arguments.append(f"--importlib={config.rootpath}")
        plan = _plan(item, {source for one in families for source in one.sources()})
        where = records_path(config.rootpath, module)
        run = ModuleRun(where, _records_folder(config), plan, arguments, _environ(config), config.rootpath)
        known[module] = run_once(config.stash[_SHARED], run)
    return known[module]


def _no_records_reason(item: RepeatItem) -> str:
    from tfdet.cli.pytest_records import records_path, refusal

    where = records_path(item.config.rootpath, item.path)
    return refusal(item.config.stash[_SHARED], where, item.family.source) or "nothing ran"


def _is_to_run(item: RepeatItem, module: Path) -> bool:
    """Return whether marks let the item run: a skipped case may crash or take hours."""
    from _pytest.skipping import evaluate_skip_marks, evaluate_xfail_marks

    if item.path != module or item.fault:
        return False
    try:
        expected = evaluate_xfail_marks(item)
        return evaluate_skip_marks(item) is None and (expected is None or expected.run or item.config.option.runxfail)
    except (Exception, pytest.fail.Exception):  # the item itself reports it
        return False


def _plan(item: RepeatItem, sources: set[str]) -> dict[str, Any]:
    """Return the probe's plan: these sources under the given solutions, and their controls."""
    from tfdet.cli.app import load_project
    from tfdet_probe.core.plan import SCHEMA

    config = item.config
    _, matrix = load_project()
    framework = config.getoption("--tfdet-framework") or _framework(item, matrix)
    keys = dict.fromkeys(["none", *config.getoption("--tfdet-solution")])
    applied = {key: matrix.solution(key).apply for key in keys}
    device = config.getoption("--tfdet-device")
    return {
        "schema": SCHEMA, "environment": ENVIRONMENT, "framework": framework,
        "determinism_variables": matrix.determinism_variables,
        "solutions": [{"key": key, **apply.model_dump(exclude_none=True)} for key, apply in applied.items() if apply],
        "cells": [{"device": device, "source": source, "solution": key, "expect": None, "may_fail": None}
                  for source in sorted(sources) for key in keys],
    }  # fmt: skip


def _framework(item: RepeatItem, matrix: Matrix) -> str:
    from tfdet.cli.pytest_framework import frameworks_used

    module = item.getparent(pytest.Module)
    assert module
    found = frameworks_used(module.obj, item.path, {key: one.package for key, one in matrix.frameworks.items()})
    if len(found) == 1:
        return found[0]
    several = f"may be of {' or '.join(found)}" if found else "imports no framework"
    raise NotReproducibleError(f"{item.path.name} {several}: name one by --tfdet-framework")


def _environ(config: pytest.Config) -> dict[str, str]:
    """Return the probe's environment: all that the module can import here is importable there."""
    from tfdet.base.paths import find_project
    from tfdet.engines import vgpu
    from tfdet_common import virtual_gpu
    from tfdet_common.machine import machine_name

    project = find_project()
    found = {**os.environ, "TFDET_ENGINE": "venv", "TFDET_MACHINE": machine_name()}
    found["PYTHONPATH"] = os.pathsep.join([str(project.runtime), *filter(None, sys.path)])
    if config.getoption("--tfdet-device") == "vgpu":
        found[virtual_gpu.FOLDER] = str(vgpu.library_folder(project))
    return found
