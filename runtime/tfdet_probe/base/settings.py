"""Apply a solution, which makes a source of nondeterminism deterministic, in a fresh process, before the first op."""

import os

from tfdet_common.variables import CALLER_VARIABLES


def determinism_environment(solution):
    """The determinism-related environment variables under a solution, {name: value}; solution: an entry of the plan."""
    ours = {name: os.environ[name] for name in CALLER_VARIABLES if os.environ.get(name)}  # the caller's
    return dict(ours, **solution.get("env") or {})


class SolutionSettings(object):
    """What a solution sets in this process.

    Args:
        solution: an entry of the plan, see core.plan.Plan.
        framework: the adapter.

    Attributes:
        options: for the case, see CaseBuilder.option.
        threads: of the framework, or None.
        replaced: the sources whose ops the solution has replaced, once it is applied.
    """

    def __init__(self, solution, framework):
        self.key = solution["key"]
        self.options = solution.get("options") or {}
        self.threads = solution.get("threads")
        self._framework = framework
        self._env = solution.get("env") or {}
        self._call = solution.get("call")
        self._seed = solution.get("seed")
        self.replaced = frozenset()  # until apply()

    def apply(self, determinism_variables):
        # type: (list[str]) -> None
        """Set this solution's variables, and unset every other determinism-related one."""
        for name in determinism_variables:
            os.environ.pop(name, None)
        os.environ.update(self._env)
        if self._call:
            self.replaced = frozenset(self._framework.apply(self._call) or ())

    def before_repeat(self):
        # type: () -> None
        """Set the seeds, if the solution does: each repeat then starts from the same state."""
        if self._seed is not None:
            self._framework.seed(self._call, self._seed)
