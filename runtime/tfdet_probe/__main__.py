"""python -m tfdet_probe: run the shared suite in this environment and print its table.

Exit codes: 0 as claimed; 1 what ran contradicts a claim; 2 wrong usage; 3 a case crashed or did
not end; 4 the asked device is not there.
"""

import os
import signal
import sys

_CAUGHT = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _CAUGHT:  # Ctrl-C while modules are imported: nothing is under way
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))

import argparse  # noqa: E402
import traceback  # noqa: E402
import warnings  # noqa: E402

from tfdet_common import parent_death  # noqa: E402
from tfdet_common.defaults import MAX_COUNT, RUN_DEFAULTS, RunParameters  # noqa: E402

from . import devices, frameworks  # noqa: E402

if _CAUGHT:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_SUITES = "/opt/tfdet/tests/suite"  # of an image


def main(argv=None):
    arguments = _parse(argv)
    try:
        parent_death.interrupt_on_sigterm()
        if arguments.exit_with:
            parent_death.exit_with_parent(arguments.exit_with)
        return _checked(arguments)
    except KeyboardInterrupt:
        return 130
    except ImportError as error:
        return _complain(3, "{}: this Python is no environment of tfdet".format(error))
    except Exception:  # 1 says that a claim is contradicted: nothing else may
        traceback.print_exc()
        return _complain(3, "a defect of tfdet: please report it")


def _checked(arguments):
    device = devices.find(arguments.device)
    device.enter()
    warnings.simplefilter("ignore")  # of old frameworks on newer NumPys: not ours to mend
    from tfdet_common.journal import Journal, JournalUnusableError

    from .core.launch import Place
    from .core.plan import BadPlan, Plan
    try:
        plan = Plan.load(arguments.plan)
        framework = frameworks.find(plan.framework)
        arguments.suite = arguments.suite or os.path.join(_SUITES, plan.framework)
        journal = Journal(arguments.out, exclusive=True)
    except (BadPlan, JournalUnusableError) as error:
        return _complain(2, str(error))
    except frameworks.NoAdapter as error:
        return _complain(2, "{}: {}".format(arguments.plan, error))
    except (IOError, OSError) as error:
        return _complain(2, "the records cannot be kept: {}".format(error))
    unknown = plan.unknown(arguments.source, arguments.solution)
    if unknown:
        return _complain(2, "not in the plan of {}: {}".format(plan.environment, ", ".join(unknown)))
    if not plan.cells(arguments.device, arguments.source, arguments.solution):
        return _complain(2, "the plan of {} has nothing to run on the {}".format(plan.environment, arguments.device))
    if not os.path.exists(arguments.suite):
        return _complain(2, "no suite at {}".format(arguments.suite))
    return _run(plan, Place(framework, device), journal, arguments)


def _run(plan, place, journal, arguments):
    framework, device = place
    framework.before_import()
    # Gone before the framework is imported: the caller's settings must not reach the control.
    for name in list(plan.determinism_variables) + ["PYTEST_ADDOPTS", "PYTEST_PLUGINS"]:
        os.environ.pop(name, None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import pytest

    from .core import report
    from .core.plugin import CaseFailed, Options, Suite
    often = RunParameters(arguments.repeats, arguments.processes, arguments.timeout, arguments.memory)
    options = Options(often, arguments.source, arguments.solution, arguments.time_budget,
                      device.in_company if arguments.contention is None else arguments.contention,
                      arguments.resume_from_any_machine, arguments.case)
    progress = report.Progress(sys.stderr)
    suite = Suite(plan, place, options, journal, progress)
    try:
        if suite.here["device"] is None:
            return _complain(4, "no {} is visible to {} here. {}".format(
                device.placement, framework.title, device.absent))
    except CaseFailed as error:
        return _complain(3, str(error))
    status = pytest.main([arguments.suite] + _pytest_options(arguments.suite, arguments.importlib),
                         plugins=[suite, report.Failures(sys.stderr)])
    progress.end()
    print(report.table(suite.journal.records))
    if suite.not_begun:
        sys.stderr.write("{} cases not begun in the {:g} minutes: run again with the same --out to resume\n".format(
            suite.not_begun, arguments.time_budget))
    return _exit_code(int(status), suite)


def _pytest_options(suite, importlib=None):
    """The suite alone decides: no settings, conftest or plugins of the folders above it.

    Marks that skip or expect a failure are heeded by who asked: their conditions may read that pytest's settings.
    """
    folder = os.path.abspath(suite if os.path.isdir(suite) else os.path.dirname(suite))
    options = ["-c", os.devnull, "--rootdir=" + (importlib or folder), "--confcutdir=" + folder, "--capture=no",
               "--continue-on-collection-errors"] + (["--import-mode=importlib"] if importlib else [])
    for plugin in ("cacheprovider", "terminal", "warnings", "faulthandler", "skipping"):
        options += ["-p", "no:" + plugin]
    return options


def _exit_code(status, suite):
    if status == 2:
        return 130
    if suite.not_kept:
        return _complain(3, "the records cannot be kept: {}; running again goes on from there".format(
            suite.not_kept))
    if not suite.collected:
        return _complain(3, "no case of the suite belongs to the plan: nothing was run")
    if status in (3, 4):
        return 3
    return 1 if suite.contradicted else 3 if suite.failed or status == 1 else 0


def _parse(argv):
    parser = argparse.ArgumentParser(prog="tfdet_probe", description="Run the determinism suite in this environment.")
    parser.add_argument("--plan", default=os.environ.get("TFDET_PLAN", "/opt/tfdet/plan.json"))
    parser.add_argument("--suite", default=os.environ.get("TFDET_SUITE"),
                        help="folder or file of cases (default: that of the plan's framework in {})".format(_SUITES))
    parser.add_argument("--importlib", metavar="ROOT", help="import the suite in pytest's mode of that name, which "
                        "names modules by their paths below this folder")
    parser.add_argument("--device", choices=devices.WORDS, default=devices.WORDS[0])
    parser.add_argument("--source", action="append", help="only this source; may be given again")
    parser.add_argument("--solution", action="append",
                        help="only this solution and its control; may be given again")
    parser.add_argument("--case", action="append", metavar="PATTERN",
                        help="only cases of such a name, * for anything: *-compiled; may be given again")
    parser.add_argument("--repeats", type=_times, default=RUN_DEFAULTS.repeats,
                        help="repeats in one process (default %(default)s)")
    parser.add_argument("--processes", type=_times, default=RUN_DEFAULTS.processes,
                        help="fresh processes (default %(default)s)")
    parser.add_argument("--timeout", type=_time("seconds"), default=RUN_DEFAULTS.seconds,
                        help="seconds for one process of a case (default %(default)g)")
    parser.add_argument("--memory", type=_positive, default=RUN_DEFAULTS.mebibytes,
                        help="MiB for one process of a case (default %(default)s)")
    parser.add_argument("--time-budget", type=_time("minutes"), metavar="MINUTES",
                        help="begin no case after so many minutes")
    parser.add_argument("--contention", action="store_true", default=None,
                        help="keep the device busy beside every second and later process (default: {})".format(
                            ", ".join(device.word for device in devices.ALL if device.in_company)))
    parser.add_argument("--no-contention", dest="contention", action="store_false")
    parser.add_argument("--resume-from-any-machine", action="store_true",
                        help="leave out the cases that another machine has finished in these records")
    parser.add_argument("--out", default=_default_out(), help="file for the records")
    parser.add_argument("--exit-with", type=int, metavar="PID", help="exit when this process ends, which holds the "
                        "other end of standard input")
    return parser.parse_args(argv)


def _positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("{} is not a positive number".format(text))
    return value


def _times(text):
    if _positive(text) > MAX_COUNT:
        raise argparse.ArgumentTypeError("{} is more than {}".format(text, MAX_COUNT))
    return int(text)


def _time(unit):
    def positive(text):
        value = float(text)
        if not 0 < value < float("inf"):  # NaN would never be over
            raise argparse.ArgumentTypeError("{} is not a positive number of {}".format(text, unit))
        return value
    return positive


def _default_out():
    """With `docker run -v $PWD/out:/out` the records stay; without it nobody asked to keep them."""
    if os.path.isdir("/out") and os.access("/out", os.W_OK):
        return "/out/records.jsonl"
    return None


def _complain(code, message):
    sys.stderr.write("tfdet: {}\n".format(message))
    return code


if __name__ == "__main__":
    sys.exit(main())
