"""A solution in a fresh process, before the first op."""

import os

from tfdet_common.variables import CALLER_VARIABLES


def environment(solution):
    """The determinism-related variables that are set under `solution`, an entry of plan["solutions"]."""
    ours = {name: os.environ[name] for name in CALLER_VARIABLES if os.environ.get(name)}
    return dict(ours, **solution.get("env") or {})


class Settings(object):
    """What a solution asks of the process.  Built from one entry of plan["solutions"]."""

    def __init__(self, solution, framework):
        self.key = solution["key"]
        self.options = solution.get("options") or {}
        self.threads = solution.get("threads")
        self._framework = framework
        self._env = solution.get("env") or {}
        self._call = solution.get("call")
        self._seed = solution.get("seed")
        self.replaced = frozenset()  # sources whose ops this solution replaces here, once it is applied

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
        """Seeds, if the solution sets them: each repeat starts from the same state."""
        if self._seed is not None:
            self._framework.seed(self._call, self._seed)
