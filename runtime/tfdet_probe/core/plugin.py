"""The pytest plugin: @case functions become test items, test items become records."""

import fnmatch
import os
import shutil
import tempfile
import time

import pytest

from tfdet_common.defaults import RUN_DEFAULTS
from tfdet_common.journal import JournalWriteError, dump

from . import launch, provenance, record
from .registry import CaseFunction
from .settings import environment


class Contradiction(Exception):
    """What ran is not what documents claim."""


class CaseFailed(Exception):
    """The case crashed or did not end."""


class CaseItem(pytest.Item):
    def __init__(self, name, parent, suite, case, cell):
        super(CaseItem, self).__init__(name, parent)
        self.suite, self.case, self.cell = suite, case, cell
        self.solution = cell["solution"]

    def runtest(self):
        try:
            found = self.suite.measure(self.case, self.solution)
        except JournalWriteError as error:
            self.suite.not_kept = str(error)
            pytest.exit(str(error), returncode=3)
        self.suite.judge(found, self.cell)

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, (Contradiction, CaseFailed)):
            return str(excinfo.value)
        return super(CaseItem, self).repr_failure(excinfo)

    def reportinfo(self):
        return str(self.fspath), None, self.name


class Refused(pytest.Item):
    """A case function that cannot be run: the others of its module are."""

    def __init__(self, name, parent, suite, reason):
        super(Refused, self).__init__(name, parent)
        self._suite, self._reason = suite, reason

    def runtest(self):
        self._suite.failed.append(self.name)
        raise CaseFailed(self._reason)

    repr_failure, reportinfo = CaseItem.repr_failure, CaseItem.reportinfo


class Options(object):
    """How to run: how often, within which limits, and what to leave out.

    often: a defaults.Run: repeats, processes, limits of one process.  time_budget: minutes after which no case is
    begun, None for no end.  contention: see launch.run_case.
    resume_from_any_machine: a case that another machine has run under all of its solutions is not run again.
    cases: patterns, of which the name of a case has to match one; none: each does.
    """

    def __init__(self, often=RUN_DEFAULTS, sources=None, solutions=None, time_budget=None, contention=False,
                 resume_from_any_machine=False, cases=None):
        self.repeats = often.repeats
        self.processes = often.processes
        self.limits = launch.Limits(often.seconds, often.mebibytes)
        self.sources = sources
        self.solutions = solutions
        self.time_budget = time_budget
        self.contention = contention
        self.resume_from_any_machine = resume_from_any_machine
        self.cases = cases or ["*"]


class Suite(object):
    """One run of the suite in one environment on one device."""

    def __init__(self, plan, place, options, journal, on_record=None):
        self.plan = plan
        self.place = place
        self.options = options
        self.journal = journal
        self.contradicted, self.failed = [], []
        self.collected, self.total, self.not_begun = 0, 0, 0
        self.not_kept = None
        self._start = time.time()
        self._on_record = on_record or (lambda item_record, suite: None)
        self._cells = plan.cells(place.device.word, options.sources, options.solutions)
        self._here = None
        self._starter = None

    @property
    def here(self):
        """{framework, stack, device, machine}, asked of a child: this process must not start the runtime."""
        if self._here is None:
            self._here = self._describe()
        return self._here

    def _describe(self):
        directory = tempfile.mkdtemp(prefix="tfdet-")

        def main():
            report = provenance.describe(self.place)
            with open(os.path.join(directory, "report-0.json"), "w") as out:
                out.write(dump(report))
        try:
            found = launch.in_child(main, directory, 0, launch.Limits(300.0, 1 << 20), self.place.framework)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        if "error" in found:
            raise CaseFailed("{} did not start here: {message} {output}".format(
                self.place.framework.title, **found["error"]))
        return found

    def _key(self, case, solution):
        return {"environment": self.plan.environment, "device": self.here["device"], "source": case.source,
                "case": case.key, "solution": solution, "case_hash": case.hash, "mode": case.mode}

    def measure(self, case, solution):
        """Run one case under one solution; the record is kept before anything is judged."""
        started = time.time()
        settings = self.plan.solutions[solution]
        before = self.place.device.state()
        reports = launch.run_case(case, settings, self.place, self.options.repeats, self.options.processes,
                                  self.options.limits, self.plan.determinism_variables,
                                  self.options.contention)
        circumstances = {
            "framework": self.here["framework"], "stack": self.here["stack"], "machine": self.here["machine"],
            "threads": settings.get("threads") or 0,
            "determinism_environment": environment(settings),
            "repeats": self.options.repeats, "relaunches": self.options.processes,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "duration_seconds": round(time.time() - started, 3),
        }
        if before is not None:
            circumstances["gpu_state"] = {"before": before, "after": self.place.device.state()}
        found = record.build(self._key(case, solution), reports, circumstances, self.place.device.details)
        self.journal.add(found)
        self._on_record(found, self)
        return found

    def judge(self, found, cell):
        """Contradiction or CaseFailed, where the record is not what the plan's cell leads to expect."""
        name = "{source} [{case}] under {solution}".format(**found)
        expect = None if found["case"] in cell.get("apart_from", ()) else cell.get("expect")
        if found["observation"] in ("crashed", "timed-out"):
            if cell.get("may_fail"):
                return
            self.failed.append(name)
            raise CaseFailed("{}: {observation}: {error[type]}: {error[message]}".format(name, **found))
        if expect == "deterministic" and found["observation"] in ("differs", "raises"):
            self.contradicted.append(name)
            raise Contradiction("{}: claimed deterministic, but {observation} ({differed} of {runs})".format(
                name, **found))
        if expect == "raises" and found["observation"] in ("differs", "equal"):
            self.contradicted.append(name)
            raise Contradiction("{}: claimed to raise, but {observation}".format(name, **found))

    def pytest_pycollect_makeitem(self, collector, name, obj):
        if not isinstance(obj, CaseFunction):
            return None
        try:
            return list(self._items(collector, obj))
        except ValueError as error:
            return [Refused.from_parent(collector, name=name, suite=self, reason=str(error))]

    def _items(self, collector, family):
        for case in family.cases(self.place.framework.modes):
            if not any(fnmatch.fnmatchcase(case.key, pattern) for pattern in self.options.cases):
                continue
            for cell in self._cells.get(case.source, []):
                yield CaseItem.from_parent(collector, name="{}[{}]".format(case.key, cell["solution"]), suite=self,
                                           case=case, cell=cell)

    def pytest_collectreport(self, report):
        """Remember the first module after which the framework's runtime was up."""
        if self._starter is None and self.place.framework.started():
            self._starter = report.nodeid

    def pytest_collection_modifyitems(self, config, items):
        """Leave out what an interrupted run has already recorded; what it found still counts.

        A module's other tests are left to others: they would start the runtime that all cases share.
        """
        if self.place.framework.started():
            raise pytest.UsageError("{}: runs an op when imported: every case would share that runtime; build inputs "
                                    "with NumPy, inside the case".format(self._starter))
        cases = [item for item in items if isinstance(item, CaseItem)]
        self._refuse_twins(cases)
        self.collected = len(cases)
        done = [item for item in items if not isinstance(item, (CaseItem, Refused))]
        for item in cases:
            found = self._finished(item)
            if found:
                done.append(item)
                self._judge_again(found, item.cell)
        items[:] = sorted((item for item in items if item not in done), key=_rank)
        left = [item for item in items if isinstance(item, CaseItem)]
        self.total = len(left)
        self.place.framework.before_fork({item.case.mode for item in left})
        if done:
            config.hook.pytest_deselected(items=done)

    def pytest_runtest_protocol(self, item, nextitem):
        """Past the budget nothing more is begun; what is left is there for the next run."""
        if self.options.time_budget is None or time.time() - self._start < 60 * self.options.time_budget:
            return None
        self.not_begun += 1
        return True

    def _judge_again(self, found, cell):
        try:
            self.judge(found, cell)
        except Contradiction:
            pass  # noted by judge(); it was told when it was found

    def _refuse_twins(self, items):
        """Two cases of one key would be one cell: the second would never be run."""
        seen = {}
        for item in items:
            key = (item.case.source, item.case.key, item.solution)
            if key in seen:
                raise pytest.UsageError("{} and {}: two cases of {} have the key {}".format(
                    seen[key].fspath, item.fspath, item.case.source, item.case.key))
            seen[key] = item

    def _finished(self, item):
        wanted = dict(self._wanted(item.case, item.solution), **self.here)
        found = self.journal.find(wanted)
        return found or (self._elsewhere(item) if self.options.resume_from_any_machine else None)

    def _wanted(self, case, solution):
        return dict(self._key(case, solution), framework=self.here["framework"], repeats=self.options.repeats,
                    relaunches=self.options.processes,
                    determinism_environment=environment(self.plan.solutions[solution]))

    def _elsewhere(self, item):
        """The record of a machine that ran all of this case: a control proves something only where it ran."""
        solutions = [cell["solution"] for cell in self._cells[item.case.source]]
        found = {key: {record["machine"]: record for record in self.journal.find_all(self._wanted(item.case, key))}
                 for key in solutions}
        whole = set.intersection(*map(set, found.values()))
        return found[item.solution][min(whole)] if whole else None


def _rank(item):
    """Cells without a rank stay in the suite's order."""
    return getattr(item, "cell", {}).get("rank", [])
