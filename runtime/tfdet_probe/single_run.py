"""python -m tfdet_probe.single_run: run one case once in this process, so that a debug tool can watch it.

It records and compares nothing.  The device is as the caller's environment variables make it.  The plan has the
environment's solutions, the settings that make a case deterministic.
"""

import argparse
import importlib
import importlib.util
import os
import sys

from . import devices, frameworks
from .base.case_builder import CaseBuilder
from .base.settings import SolutionSettings
from .core.child import make_runner
from .core.plan import Plan
from .core.registry import CaseFunction


class CaseNotFoundError(Exception):
    """The module has no such case."""


def main(argv=None):
    arguments = _parse(argv)
    plan = Plan.load(arguments.plan)
    framework, device = frameworks.load_adapter(plan.framework), devices.by_cli_name(arguments.device)
    for name in plan.determinism_variables:  # before the framework is imported, as the probe does
        os.environ.pop(name, None)
    case = _find(_import(arguments.module, arguments.path), framework, arguments.case)
    settings = SolutionSettings(plan.solutions[arguments.solution], framework)
    settings.apply(plan.determinism_variables)
    computation = case.build(CaseBuilder(settings.options))
    if computation.launch:
        raise CaseNotFoundError("{}: a case of several processes is not run in one".format(case.key))
    make_runner(framework, device, computation, case.mode, settings).run()


def _import(name, path):
    """The module at `path`, under the name that pytest gave it, which no path may lead to."""
    package = name.rpartition(".")[0]
    if package:
        importlib.import_module(package)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CaseNotFoundError("{} is not a Python module".format(path))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _find(module, framework, key):
    for family in vars(module).values():
        if isinstance(family, CaseFunction):
            for case in family.cases(framework.modes):
                if case.key == key:
                    return case
    raise CaseNotFoundError("{} has no case {}".format(module.__name__, key))


def _parse(argv):
    parser = argparse.ArgumentParser(prog="tfdet_probe.single_run", description="Run one case once.")
    parser.add_argument("--plan", required=True)
    parser.add_argument("--device", choices=devices.CLI_NAMES, required=True)
    parser.add_argument("--module", required=True, help="its name")
    parser.add_argument("--path", required=True, help="of the module")
    parser.add_argument("--case", required=True, help="its key")
    parser.add_argument("--solution", required=True)
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
