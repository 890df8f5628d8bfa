"""python -m tfdet_probe: run the suite in this environment and print its table.

The suite has cases, each one form of a source of nondeterminism.  A solution is what makes a source deterministic; its
control is the same case without it.  The plan lists what to run, and what documents claim of the results.

Exit codes: 0 results as claimed; 1 a result contradicts a claim; 2 wrong usage; 3 a case crashed or timed out; 4 the
requested device is not available.
"""

import os
import signal
import sys

_HANDLES_SIGINT = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _HANDLES_SIGINT:  # Ctrl-C during the imports: exit at once, nothing is running
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))

import argparse  # noqa: E402
import traceback  # noqa: E402
import warnings  # noqa: E402

from tfdet_common import parent_death, virtual_gpu  # noqa: E402
from tfdet_common.defaults import MAX_COUNT, RUN_DEFAULTS, RunParameters  # noqa: E402

from . import devices, frameworks  # noqa: E402

if _HANDLES_SIGINT:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_IMAGE_SUITES = "/opt/tfdet/tests/suite"  # in an image that `tfdet build` created


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
        return _report_error(3, "{}: this Python does not have the packages of a tfdet environment".format(error))
    except (IOError, OSError) as error:  # such as a full disk, on which there is no folder for temporary files
        return _report_error(3, str(error))
    except Exception:  # exit code 1 is reserved for contradicted claims
        traceback.print_exc()
        return _report_error(3, "a defect of tfdet: please report it")


def _chosen_axes(arguments):
    """Return {placement or multiprocessors: its number} of those not at their defaults, for the records."""
    axes = {virtual_gpu.PLACEMENT: arguments.placement, virtual_gpu.MULTIPROCESSORS: arguments.multiprocessors}
    if arguments.multiprocessors == virtual_gpu.DEFAULT_MULTIPROCESSORS:
        del axes[virtual_gpu.MULTIPROCESSORS]
    return {detail: number for detail, number in axes.items() if number is not None}


def _checked(arguments):
    device = devices.by_cli_name(arguments.device)
    try:
        device.choose(devices.DeviceChoices(
            tuple(arguments.schedule), arguments.cpu_fallbacks, arguments.code, _chosen_axes(arguments)))
    except ValueError as error:
        return _report_error(2, str(error))
    device.initialize()
    warnings.simplefilter("ignore")  # of old frameworks on newer NumPys
    from tfdet_common.journal import Journal, JournalUnusableError

    from .core.child_job import RunTarget
    from .core.plan import Plan, PlanFormatError
    try:
        plan = Plan.load(arguments.plan)
        framework = frameworks.load_adapter(plan.framework)
        arguments.suite = arguments.suite or os.path.join(_IMAGE_SUITES, plan.framework)
        journal = Journal(arguments.out, exclusive=True)
    except (PlanFormatError, JournalUnusableError) as error:
        return _report_error(2, str(error))
    except frameworks.NoAdapterError as error:
        return _report_error(2, "{}: {}".format(arguments.plan, error))
    except (IOError, OSError) as error:
        return _report_error(2, "cannot write the records: {}".format(error))
    unknown = plan.unknown(arguments.source, arguments.solution)
    if unknown:
        return _report_error(2, "not in the plan of {}: {}".format(plan.environment, ", ".join(unknown)))
    if arguments.prove and not device.can_prove:
        return _report_error(2, "--prove: the device {} cannot prove anything".format(arguments.device))
    if not plan.cells(arguments.device, arguments.source, arguments.solution):
        return _report_error(2, "the plan of {} has nothing to run on the {}".format(
            plan.environment, arguments.device))
    if not os.path.exists(arguments.suite):
        return _report_error(2, "no suite at {}".format(arguments.suite))
    try:
        return _run(plan, RunTarget(framework, device), journal, arguments)
    finally:
        device.end_proofs()


def _run(plan, target, journal, arguments):
    framework, device = target
    if arguments.prove:
        device.enable_proofs()
    if arguments.placement is not None:
        os.environ.update(framework.own_allocations())
    try:
        framework.before_import()
    except OSError as error:  # it loads a shared library itself; what the loader misses for an import is an ImportError
        return _report_error(3, "{} cannot be imported: {}".format(framework.title, error))
    # Unset before the framework is imported: the caller's settings must not affect the control.
    for name in list(plan.determinism_variables) + ["PYTEST_ADDOPTS", "PYTEST_PLUGINS"]:
        os.environ.pop(name, None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import pytest

    from .core import report
    from .core.plugin import CaseFailedError, Options, Suite
    parameters = RunParameters(arguments.repeats, arguments.processes, arguments.timeout, arguments.memory)
    options = Options(parameters, arguments.source, arguments.solution, arguments.time_budget,
                      device.contention_by_default if arguments.contention is None else arguments.contention,
                      arguments.resume_from_any_machine, arguments.case, arguments.prove)
    progress = report.Progress(sys.stderr)
    suite = Suite(plan, target, options, journal, progress)
    try:
        if suite.provenance["device"] is None:
            return _report_error(4, "{} sees no {} here. {}".format(
                framework.title, device.placement, device.unavailable_advice))
    except CaseFailedError as error:
        return _report_error(3, str(error))
    status = pytest.main([arguments.suite] + _pytest_options(arguments.suite, arguments.importlib),
                         plugins=[suite, report.Failures(sys.stderr)])
    progress.end()
    print(report.result(suite.journal.records, arguments.table))
    if suite.cases_not_begun:
        sys.stderr.write("{} cases not begun in the {:g} minutes: run again with the same --out to resume\n".format(
            suite.cases_not_begun, arguments.time_budget))
    return _exit_code(int(status), suite)


def _pytest_options(suite, importlib=None):
    """Options that isolate the suite: no settings, conftest files or plugins of the folders above it.

    Marks that skip or expect a failure are off: the pytest that called this probe applies them with its own settings.
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
    if suite.write_error:
        return _report_error(3, "cannot write the records: {}; running again resumes from there".format(
            suite.write_error))
    if not suite.collected:
        return _report_error(3, "no case of the suite is in the plan: nothing was run")
    if status in (3, 4):
        return 3
    return 1 if suite.contradicted else 3 if suite.failed or status == 1 else 0


def _parse(argv):
    parser = argparse.ArgumentParser(prog="tfdet_probe", description="Run the determinism suite in this environment.")
    parser.add_argument("--plan", default=os.environ.get("TFDET_PLAN", "/opt/tfdet/plan.json"))
    parser.add_argument("--suite", default=os.environ.get("TFDET_SUITE"),
                        help="folder or file of cases (default: that of the plan's framework in {})".format(
                            _IMAGE_SUITES))
    parser.add_argument("--importlib", metavar="ROOT", help="import the suite in pytest's mode of that name, which "
                        "names modules by their paths below this folder")
    parser.add_argument("--device", choices=devices.CLI_NAMES, default=devices.CLI_NAMES[0])
    parser.add_argument("--source", action="append", help="only this source; may be repeated")
    parser.add_argument("--solution", action="append",
                        help="only this solution and its control; may be repeated")
    parser.add_argument("--case", action="append", metavar="PATTERN",
                        help="only cases whose key matches: *-compiled; may be repeated")
    parser.add_argument("--repeats", type=_count, default=RUN_DEFAULTS.repeats,
                        help="repeats in one process (default %(default)s)")
    parser.add_argument("--processes", type=_count, default=RUN_DEFAULTS.processes,
                        help="fresh processes (default %(default)s)")
    parser.add_argument("--timeout", type=_duration("seconds"), default=RUN_DEFAULTS.seconds,
                        help="seconds for one process of a case (default %(default)g)")
    parser.add_argument("--memory", type=_positive, default=RUN_DEFAULTS.mebibytes,
                        help="MiB for one process of a case (default %(default)s)")
    parser.add_argument("--time-budget", type=_duration("minutes"), metavar="MINUTES",
                        help="begin no case after so many minutes")
    parser.add_argument("--contention", action="store_true", default=None,
                        help="keep the device busy beside every process but the first (default: {})".format(
                            ", ".join(device.cli_name for device in devices.ALL if device.contention_by_default)))
    parser.add_argument("--no-contention", dest="contention", action="store_false")
    parser.add_argument("--prove", action="store_true",
                        help="let the device prove that no order of execution changes the results ({})".format(
                            ", ".join(device.cli_name for device in devices.ALL if device.can_prove)))
    parser.add_argument("--schedule", action="append", default=[],
                        help="run under this schedule of the vgpu, after the reference; may be repeated")
    parser.add_argument("--code", choices=virtual_gpu.CODES,
                        help="what the vgpu runs where a build has both PTX and machine code (default: its own)")
    parser.add_argument("--multiprocessors", type=int,
                        help="number of multiprocessors of the vgpu (default: {})".format(
                            virtual_gpu.DEFAULT_MULTIPROCESSORS))
    parser.add_argument("--placement", type=int, metavar="SEED",
                        help="let this seed choose the addresses of the vgpu's allocations (default: consecutive ones)")
    parser.add_argument("--cpu-fallbacks", action="store_true",
                        help="compute calls of vendor libraries on the CPU on the vgpu; the records are no evidence")
    parser.add_argument("--resume-from-any-machine", action="store_true",
                        help="skip the cases that another machine has finished in these records")
    parser.add_argument("--out", default=_default_out(), help="file for the records")
    parser.add_argument("--table", action="store_true", help="print a row for each source, however many there are")
    parser.add_argument("--exit-with", type=int, metavar="PID", help="exit when this process ends, which holds the "
                        "other end of standard input")
    return parser.parse_args(argv)


def _positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("{} is not a positive number".format(text))
    return value


def _count(text):
    if _positive(text) > MAX_COUNT:
        raise argparse.ArgumentTypeError("{} is more than {}".format(text, MAX_COUNT))
    return int(text)


def _duration(unit):
    def positive(text):
        value = float(text)
        if not 0 < value < float("inf"):  # NaN would never end
            raise argparse.ArgumentTypeError("{} is not a positive number of {}".format(text, unit))
        return value
    return positive


def _default_out():
    """/out if it is mounted, as by `docker run -v $PWD/out:/out`; otherwise None: the records are not written."""
    if os.path.isdir("/out") and os.access("/out", os.W_OK):
        return "/out/records.jsonl"
    return None


def _report_error(code, message):
    sys.stderr.write("tfdet: {}\n".format(message))
    return code


if __name__ == "__main__":
    sys.exit(main())
