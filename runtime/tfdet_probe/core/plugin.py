"""The pytest plugin: @case functions become test items, test items become records.

A case is one form of a source, which is a known source of nondeterminism. A solution is what makes it deterministic,
such as an environment variable; under the solution `none` it runs as the control. A cell of the plan is a source with a
solution, and what documents claim of it.
"""

import fnmatch
import os
import shutil
import tempfile
import time

import pytest

from tfdet_common.defaults import RUN_DEFAULTS
from tfdet_common.journal import JournalWriteError, dump

from ..base.settings import determinism_environment
from . import fork_server, provenance, record
from .case_processes import run_case
from .child_job import Limits
from .registry import CaseFunction


class ClaimContradictedError(Exception):
    """The result contradicts what documents claim."""


class CaseFailedError(Exception):
    """The case crashed or timed out."""


class CaseItem(pytest.Item):
    """One case under one solution, as a test of pytest."""

    def __init__(self, name, parent, suite, case, cell):
        super(CaseItem, self).__init__(name, parent)
        self.suite, self.case, self.cell = suite, case, cell  # the cell of the plan, a dict
        self.solution = cell["solution"]

    def runtest(self):
        try:
            result = self.suite.measure(self.case, self.solution)
        except JournalWriteError as error:
            self.suite.write_error = str(error)
            pytest.exit(str(error), returncode=3)
        self.suite.check_claim(result, self.cell)

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, (ClaimContradictedError, CaseFailedError)):
            return str(excinfo.value)
        return super(CaseItem, self).repr_failure(excinfo)

    def reportinfo(self):
        return str(self.fspath), None, self.name


class InvalidCaseItem(pytest.Item):
    """A case function with a fault, see CaseFunction.fault: it fails, and the others of its module run."""

    def __init__(self, name, parent, suite, reason):
        super(InvalidCaseItem, self).__init__(name, parent)
        self._suite, self._reason = suite, reason

    def runtest(self):
        self._suite.failed.append(self.name)
        raise CaseFailedError(self._reason)

    repr_failure, reportinfo = CaseItem.repr_failure, CaseItem.reportinfo


class Options(object):
    """How to run: how often, within which limits, and what to leave out.

    parameters: defaults.RunParameters.  time_budget: minutes after which no case is
    begun, None for no end.  contention: see case_processes.run_case.
    resume_from_any_machine: a case that another machine has run under all of its solutions is not run again.
    cases: patterns, of which the name of a case has to match one; none: each does.
    proves: in the first process of each case the virtual GPU proves, where it can, that no order of execution gives
    other bytes.
    """

    def __init__(self, parameters=RUN_DEFAULTS, sources=None, solutions=None, time_budget=None, contention=False,
                 resume_from_any_machine=False, cases=None, proves=False):
        self.repeats = parameters.repeats
        self.processes = parameters.processes
        self.limits = Limits(parameters.seconds, parameters.mebibytes)
        self.sources = sources
        self.solutions = solutions
        self.time_budget = time_budget
        self.contention = contention
        self.resume_from_any_machine = resume_from_any_machine
        self.cases = cases or ["*"]
        self.proves = proves


class Suite(object):
    """One run of the suite in one environment on one device.

    Attributes:
        contradicted, failed: names of cases whose results contradict a claim, and of those that crashed or timed out.
        collected, total: the number of cases that the suite has, and of those that this run has to run.
        cases_not_begun: the number of cases for which no time was left.
        write_error: why the journal could not be written, or None.
    """

    def __init__(self, plan, target, options, journal, on_record=None):
        self.plan = plan
        self.target = target
        self.options = options
        self.journal = journal
        self.contradicted, self.failed = [], []
        self.collected, self.total, self.cases_not_begun = 0, 0, 0
        self.write_error = None
        self._start = time.time()
        self._on_record = on_record or (lambda record, suite: None)
        self._cells = plan.cells(target.device.cli_name, options.sources, options.solutions)
        self._provenance = None
        self._runtime_starter = None

    @property
    def provenance(self):
        """{framework, stack, device, machine}, queried in a child: this process must not start the runtime."""
        if self._provenance is None:
            self._provenance = self._query_provenance()
        return self._provenance

    def _query_provenance(self):
        directory = tempfile.mkdtemp(prefix="tfdet-")

        def main():
            report = provenance.describe(self.target)
            with open(os.path.join(directory, "report-0.json"), "w") as out:
                out.write(dump(report))
        try:
            answer = fork_server.in_child(main, directory, 0, Limits(300.0, 1 << 20), self.target.framework)  # 1 TiB
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        if "error" in answer:
            raise CaseFailedError("{} did not start here: {message} {output}".format(
                self.target.framework.title, **answer["error"]))
        return answer

    def _key(self, case, solution):
        return {"environment": self.plan.environment, "device": self.provenance["device"], "source": case.source,
                "case": case.key, "solution": solution, "case_hash": case.hash, "mode": case.mode}

    def measure(self, case, solution):
        """Run one case under one solution; returns the record, which is in the journal before any claim is checked."""
        started, start = time.time(), time.monotonic()  # a clock that is set meanwhile changes no duration
        settings = self.plan.solutions[solution]
        state_before = self.target.device.state()
        reports = run_case(case, settings, self.target, self.options.repeats, self.options.processes,
                           self.options.limits, self.plan.determinism_variables, self.options.contention,
                           self.options.proves)
        provenance_fields = {
            "framework": self.provenance["framework"], "stack": self.provenance["stack"],
            "machine": self.provenance["machine"],
            "threads": settings.get("threads") or 0,
            "determinism_environment": determinism_environment(settings),
            "repeats": self.options.repeats, "relaunches": self.options.processes,  # a record's name for processes
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "duration_seconds": round(time.monotonic() - start, 3),
        }
        if state_before is not None:
            provenance_fields["gpu_state"] = {"before": state_before, "after": self.target.device.state()}
        result = record.build_record(self._key(case, solution), reports, provenance_fields, self.target.device.details)
        self.journal.add(result)
        self._on_record(result, self)
        return result

    def check_claim(self, result, cell):
        """Compare a record with what the plan's cell expects.

        Raises:
            ClaimContradictedError: documents claim another result.
            CaseFailedError: the case crashed or timed out unexpectedly.
        """
        name = "{source} [{case}] under {solution}".format(**result)
        expect = None if result["case"] in cell.get("except_cases", ()) else cell.get("expect")
        if result["observation"] in ("crashed", "timed-out"):
            if cell.get("may_fail"):
                return
            self.failed.append(name)
            raise CaseFailedError("{}: {observation}: {error[type]}: {error[message]}".format(name, **result))
        if expect == "deterministic" and result["observation"] in ("differs", "raises"):
            self.contradicted.append(name)
            raise ClaimContradictedError("{}: claimed deterministic, but {observation} ({differed} of {runs})".format(
                name, **result))
        if expect == "raises" and result["observation"] in ("differs", "equal"):
            self.contradicted.append(name)
            raise ClaimContradictedError("{}: claimed to raise, but {observation}".format(name, **result))

    def pytest_pycollect_makeitem(self, collector, name, obj):
        if not isinstance(obj, CaseFunction):
            return None
        try:
            return list(self._items(collector, obj))
        except ValueError as error:
            return [InvalidCaseItem.from_parent(collector, name=name, suite=self, reason=str(error))]

    def _items(self, collector, case_function):
        for case in case_function.cases(self.target.framework.modes):
            if not any(fnmatch.fnmatchcase(case.key, pattern) for pattern in self.options.cases):
                continue
            for cell in self._cells.get(case.source, []):
                yield CaseItem.from_parent(collector, name="{}[{}]".format(case.key, cell["solution"]), suite=self,
                                           case=case, cell=cell)

    def pytest_collectreport(self, report):
        """Remember the first module whose import started the framework's runtime."""
        if self._runtime_starter is None and self.target.framework.started():
            self._runtime_starter = report.nodeid

    def pytest_collection_modifyitems(self, config, items):
        """Deselect the cases that the journal has results of; these results count.

        Other tests of a module do not run: they would start the runtime, which all cases would then share.
        """
        if self.target.framework.started():
            raise pytest.UsageError("{}: runs an op when imported: every case would share that runtime; build inputs "
                                    "with NumPy, inside the case".format(self._runtime_starter))
        cases = [item for item in items if isinstance(item, CaseItem)]
        self._reject_duplicates(cases)
        self.collected = len(cases)
        deselected = [item for item in items if not isinstance(item, (CaseItem, InvalidCaseItem))]
        for item in cases:
            result = self._finished(item)
            if result:
                deselected.append(item)
                self._recheck_claim(result, item.cell)
        items[:] = sorted((item for item in items if item not in deselected), key=_rank)
        pending = [item for item in items if isinstance(item, CaseItem)]
        self.total = len(pending)
        self.target.framework.before_fork({item.case.mode for item in pending})
        if deselected:
            config.hook.pytest_deselected(items=deselected)

    def pytest_runtest_protocol(self, item, nextitem):
        """Skip the remaining items when the time budget is spent; the next run resumes with them."""
        if self.options.time_budget is None or time.time() - self._start < 60 * self.options.time_budget:
            return None
        self.cases_not_begun += 1
        return True

    def _recheck_claim(self, result, cell):
        try:
            self.check_claim(result, cell)
        except ClaimContradictedError:
            pass  # check_claim() counts it; the run that measured it has reported it

    def _reject_duplicates(self, items):
        """Reject two cases with one key: the journal could not distinguish them, so the second would never run."""
        items_by_key = {}
        for item in items:
            key = (item.case.source, item.case.key, item.solution)
            if key in items_by_key:
                raise pytest.UsageError("{} and {}: two cases of {} have the key {}".format(
                    items_by_key[key].fspath, item.fspath, item.case.source, item.case.key))
            items_by_key[key] = item

    def _finished(self, item):
        expected = dict(self._expected_record(item.case, item.solution), **self.provenance)
        result = next(self._measured_as_now(self.journal.find_all(expected)), None)
        return result or (self._other_machine_record(item) if self.options.resume_from_any_machine else None)

    def _expected_record(self, case, solution):
        return dict(self._key(case, solution), framework=self.provenance["framework"], repeats=self.options.repeats,
                    relaunches=self.options.processes,
                    determinism_environment=determinism_environment(self.plan.solutions[solution]))

    def _measured_as_now(self, records):
        """Yield the records of the code that this run executes (PTX or machine code), with a proof only if it proves.

        A record of an error has no proof in any case.
        """
        chosen = (match for match in records if self.target.device.is_chosen(match["device"].get("details") or {}))
        return (record for record in chosen if record["error"] or bool(record.get("proof")) == self.options.proves)

    def _other_machine_record(self, item):
        """The record of a machine that ran this case under all solutions: a control is valid on its machine only."""
        solutions = [cell["solution"] for cell in self._cells[item.case.source]]
        by_machine = {}
        for key in solutions:
            records = self._measured_as_now(self.journal.find_all(self._expected_record(item.case, key)))
            by_machine[key] = {record["machine"]: record for record in records}
        complete = set.intersection(*map(set, by_machine.values()))
        return by_machine[item.solution][min(complete)] if complete else None


def _rank(item):
    """The sort key of an item; cells without a rank stay in the suite's order."""
    return getattr(item, "cell", {}).get("rank", [])
