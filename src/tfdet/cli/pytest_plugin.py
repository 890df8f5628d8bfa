"""The pytest plugin behind `pytest --tfdet`: tests whether a user's own op, layer or model is reproducible.

The probe runs each module's @case functions in a separate process, as it runs the suite in an environment; an item
fails by the verdict of its records (docs/how-to/test-your-own-op.md).

A source is what may be nondeterministic, as @case names it; a solution is what makes it deterministic. The control is
the same case under the solution `none`, which changes nothing. A cell is a source under one solution on one device.
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

ENVIRONMENT = "here"  # in records: the Python that runs pytest, not a pinned environment of the matrix
_RECORDS = pytest.StashKey[dict[Path, "list[Record]"]]()  # {module: its records}
_SHARED_FOLDER = pytest.StashKey[Path]()  # the folder of a session's records, which all its processes use
_WRAPPED_FAULT = "write @case above all other decorators; pytest's marks alone may stand above it"


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
        type=_parse_count,
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
    _set_run_options(config)
    shared = getattr(config, "workerinput", {}).get("tfdet")
    if config.getoption("--tfdet-device") == "vgpu" and not config.option.collectonly:
        _preload_virtual_gpu()
    if shared is None:
        _check_records_folder(config)
        folder = TemporaryDirectory(prefix="tfdet-", ignore_cleanup_errors=True)
        config.add_cleanup(folder.cleanup)
        shared = folder.name
    config.stash[_SHARED_FOLDER] = Path(shared)


def _parse_count(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= MAX_COUNT:
        raise argparse.ArgumentTypeError(f"{text} is not a number of schedules, from 1 to {MAX_COUNT}")
    return int(text)


def _set_run_options(config: pytest.Config) -> None:
    """Set device, repeats and processes as --tfdet-prove, --tfdet-schedule and --tfdet-schedules require."""
    option = config.option
    if option.tfdet_prove:
        option.tfdet_device, option.tfdet_repeats, option.tfdet_processes = "vgpu", 1, 1
    number = len(option.tfdet_schedule) or option.tfdet_schedules
    if option.tfdet_device != "vgpu" and (number or option.tfdet_cpu_fallbacks):
        flag = "--tfdet-schedule" if number else "--tfdet-cpu-fallbacks"
        raise pytest.UsageError(f"{flag} requires --tfdet-device vgpu")
    if unknown := [schedule for schedule in option.tfdet_schedule if not is_schedule(schedule)]:
        raise pytest.UsageError(f"--tfdet-schedule {unknown[0]}: schedule not found. Schedules: {SCHEDULES}")
    if number:
        option.tfdet_repeats, option.tfdet_processes = number, 1


def _preload_virtual_gpu() -> None:
    """Load the virtual GPU's libraries: test modules import PyTorch here, which requires CUDA."""
    from tfdet.base.errors import TfdetError
    from tfdet.base.paths import find_project
    from tfdet.engines import vgpu

    try:
        vgpu.preload(vgpu.library_folder(find_project()))
    except TfdetError as error:
        raise pytest.UsageError(f"--tfdet-device vgpu: {error.cause}. {error.advice}") from error


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the shared folder to a worker; pytest-xdist calls this before the worker starts."""
    if _SHARED_FOLDER in node.config.stash:
        node.workerinput["tfdet"] = str(node.config.stash[_SHARED_FOLDER])


def _check_records_folder(config: pytest.Config) -> None:
    """Create the folder of --tfdet-out; pytest.UsageError if it is not writable."""
    out = _records_folder(config)
    if out is None or config.option.collectonly:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=out):
            pass
    except OSError as error:
        folder = config.getoption("--tfdet-out")
        raise pytest.UsageError(
            f"--tfdet-out {folder}: {error.strerror}. Pass a folder that you may write to."
        ) from error


def _records_folder(config: pytest.Config) -> Path | None:
    out: Path | None = config.getoption("--tfdet-out")
    return out and config.invocation_params.dir / out


def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> list[pytest.Item] | None:
    """Collect case functions, or none without --tfdet."""
    is_enabled = collector.config.getoption("--tfdet")
    if is_enabled and isinstance(obj, type) and issubclass(obj, TestCase):
        _warn_of_methods(collector, obj)
    family = unwrap(obj, stop=_is_case) if isinstance(obj, FunctionType) else obj
    if not _is_case(family):
        return None
    if not is_enabled:
        return []
    solutions = collector.config.getoption("--tfdet-solution") or ["none"]
    fault = family.fault if family is obj else f"{name}: {_WRAPPED_FAULT}"  # type: ignore[attr-defined]
    return [
        RepeatItem.from_parent(collector, name=f"{name}[{solution}]", family=family, solution=solution, fault=fault)
        for solution in solutions
    ]


def _is_case(obj: object) -> bool:
    """Return whether `obj` is a case function, without importing tfdet_probe."""
    return type(obj).__module__ == "tfdet_probe.core.registry" and type(obj).__name__ == "CaseFunction"


def _unwrap_case(family: Any) -> Any:
    """Return the user's function below one or several @case decorators."""
    return _unwrap_case(family.function) if _is_case(family) else family


def _warn_of_methods(collector: pytest.Collector, tests: type[TestCase]) -> None:
    """Warn of cases that are methods of a unittest class, which this plugin does not collect."""
    for name in sorted(name for name, value in vars(tests).items() if _is_case(value)):
        collector.warn(pytest.PytestCollectionWarning(f"{tests.__name__}.{name} is not run: write it as a function"))


class RepeatItem(pytest.Item):
    """A test item: one case function under one solution.

    family: the case function with all its cases.  fault: why it cannot be run, or None.
    """

    def __init__(self, *, family: Any, solution: str, fault: str | None, **arguments: Any) -> None:
        # Pass nodeid explicitly: pytest 9.2 parses a name only if it is the whole node ID.
        super().__init__(**arguments, nodeid=f"{arguments['parent'].nodeid}::{arguments['name']}")
        self.obj = unwrap(_unwrap_case(family))  # conditions of marks may use the function's globals
        self.fault = fault
        self.family = family
        self._solution = solution
        self.own_markers.extend(family.pytestmark)
        self.keywords.update((mark.name, mark) for mark in family.pytestmark)

    def runtest(self) -> None:
        """Raise NotReproducibleError unless the records of this case function show that it is reproducible."""
        if self.fault:
            raise NotReproducibleError(self.fault)
        all_records = [record for record in _module_records(self) if record.case_hash == self.family.hash]
        if not all_records:
            raise NotReproducibleError(_no_records_reason(self))
        for source, cell in _cells(all_records, self._solution):
            records = [r for r in all_records if (r.source, r.solution) == (source, self._solution)]
            text = f"{source} under {self._solution}: {cell.verdict}, {cell.differed} of {cell.runs} runs differed"
            self.add_report_section("call", "tfdet", f"{text}{_fallback_text(records)}")
            if not _is_reproducible(cell, self.config.getoption("--tfdet-prove")):
                raise NotReproducibleError(f"{text}{_failure_detail(cell, records)}{self._location(cell, records)}")

    def _location(self, cell: InferredCell, records: list[Record]) -> str:
        """Return the op that differs first, its line, and a command to replay it; empty but on the virtual GPU."""
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
    """A failure of a test item, with its report as message."""


def _cells(records: list[Record], solution: str) -> Iterator[tuple[str, InferredCell]]:
    """Yield (source, cell with its verdict) for each source that ran under the solution."""
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
    from tfdet.verdicts.infer import NO_DIFFERENCE_VERDICTS, Verdict

    return cell.verdict is Verdict.SCHEDULE_INDEPENDENT if proves else cell.verdict in NO_DIFFERENCE_VERDICTS


def _proof_text(records: list[Record]) -> str:
    """Return the proofs' explanation of each kernel."""
    from tfdet.publish import proof_views

    return "\n".join(proof_views.explain(records)).strip()


def _fallback_text(records: list[Record]) -> str:
    """Return a line with the calls that CPU fallbacks computed; empty if there were none."""
    details = [(record.device.details or {}).get("cpu_fallbacks") for record in records]
    calls = sorted({call for detail in details if isinstance(detail, list) for call in detail})
    return f"\ncomputed by CPU fallbacks, so not evidence about NVIDIA's library: {', '.join(calls)}" if calls else ""


def _failure_detail(cell: InferredCell, records: list[Record]) -> str:
    """Return the proofs, the largest difference or the errors; empty for a difference that is not numeric."""
    from tfdet.verdicts.infer import NO_DIFFERENCE_VERDICTS, Verdict

    if cell.verdict in NO_DIFFERENCE_VERDICTS:
        return f"\n{_proof_text(records)}"
    if cell.verdict is Verdict.NONDETERMINISTIC:
        ulps = [record.max_ulp for record in records if record.max_ulp is not None]
        return f" (at most by {max(ulps)} ulp)" if ulps else ""
    errors = dict.fromkeys(f"{r.error.type}: {r.error.message}" for r in records if r.error)
    return "\n" + "\n".join(errors)


def _module_records(item: RepeatItem) -> list[Record]:
    """Return the records of all cases of the item's module, which run once per session."""
    from tfdet.cli.pytest_records import ModuleRun, records_path, run_once
    from tfdet_probe.core.registry import case_key

    config, module = item.config, item.path
    records_by_module = config.stash.setdefault(_RECORDS, {})
    if module not in records_by_module:
        options = ("device", "repeats", "processes", "timeout")
        arguments = [f"--{name}={config.getoption(f'--tfdet-{name}')}" for name in options]
        arguments += [f"--schedule={schedule}" for schedule in config.getoption("--tfdet-schedule")]
        arguments += ["--cpu-fallbacks"] * config.getoption("--tfdet-cpu-fallbacks")
        items = [other_item for other_item in item.session.items if isinstance(other_item, RepeatItem)]
        families = [other_item.family for other_item in items if _should_run(other_item, module)]
        arguments += ["--suite", str(module), *(f"--case={case_key(f.__name__, [], '*')}" for f in families)]
        arguments += ["--prove"] * config.getoption("--tfdet-prove")
        if config.getoption("importmode") == "importlib":
            arguments.append(f"--importlib={config.rootpath}")
        plan = _plan(item, {source for family in families for source in family.sources()})
        path = records_path(config.rootpath, module)
        run = ModuleRun(path, _records_folder(config), plan, arguments, _environ(config), config.rootpath)
        records_by_module[module] = run_once(config.stash[_SHARED_FOLDER], run)
    return records_by_module[module]


def _no_records_reason(item: RepeatItem) -> str:
    from tfdet.cli.pytest_records import find_refusal, records_path

    path = records_path(item.config.rootpath, item.path)
    return find_refusal(item.config.stash[_SHARED_FOLDER], path, item.family.source) or "nothing ran"


def _should_run(item: RepeatItem, module: Path) -> bool:
    """Return whether the item is in the module and no mark skips it: a skipped case may crash or take hours."""
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
    framework = config.getoption("--tfdet-framework") or _find_framework(item, matrix)
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


def _find_framework(item: RepeatItem, matrix: Matrix) -> str:
    """Return the framework that the item's module imports; NotReproducibleError if it is not exactly one."""
    from tfdet.cli.pytest_framework import find_frameworks

    module = item.getparent(pytest.Module)
    assert module
    packages = {key: framework.package for key, framework in matrix.frameworks.items()}
    frameworks = find_frameworks(module.obj, item.path, packages)
    if len(frameworks) == 1:
        return frameworks[0]
    problem = f"may be of {' or '.join(frameworks)}" if frameworks else "imports no framework"
    raise NotReproducibleError(f"{item.path.name} {problem}: name one by --tfdet-framework")


def _environ(config: pytest.Config) -> dict[str, str]:
    """Return the probe's environment variables; its import path is the one of this process."""
    from tfdet.base.paths import find_project
    from tfdet.engines import vgpu
    from tfdet_common import virtual_gpu
    from tfdet_common.machine import machine_name

    project = find_project()
    environ = {**os.environ, "TFDET_ENGINE": "venv", "TFDET_MACHINE": machine_name()}
    environ["PYTHONPATH"] = os.pathsep.join([str(project.runtime), *filter(None, sys.path)])
    if config.getoption("--tfdet-device") == "vgpu":
        environ[virtual_gpu.FOLDER] = str(vgpu.library_folder(project))
    return environ
