"""The interposition of child processes; each has a position, such as 0.2.1, the same in every run.

The interposer of a process wraps functions of libraries, notes their calls, and writes these as a ledger at its end.
"""

import functools
import inspect
import json
import os
import subprocess

from .variables import PARENT_RANK, POSITION, SETTINGS_VARIABLE, STARTED_AT, hooked_path, launched_rank


class Children(object):
    """The wrappers around the functions that start processes. interposer: of this process."""

    def __init__(self, interposer):
        self._interposer = interposer
        self._count = 0

    def open(self):
        self._wrap_popen()
        self._interposer.imports.add(
            {"multiprocessing.util": self._hook_multiprocessing, "multiprocessing.process": self._hook_bootstrap}
        )
        os.register_at_fork(before=self._before_fork, after_in_child=self._in_fork)  # novm

    def _next_position(self):
        self._count += 1
        return "{}.{}".format(self._interposer.position, self._count)

    def _environment(self, environment, started_at=""):
        """Return the variables to add to a child's environment. environment: the child's own."""
        return {
            SETTINGS_VARIABLE: json.dumps(self._interposer.settings, sort_keys=True),
            POSITION: self._next_position(),
            STARTED_AT: started_at,
            PARENT_RANK: launched_rank(),
            "PYTHONPATH": hooked_path(environment.get("PYTHONPATH", "")),
        }

    def _wrap_popen(self):
        original, children = subprocess.Popen.__init__, self
        signature = inspect.signature(original)

        def __init__(self, *args, **kwargs):
            try:
                arguments = signature.bind(self, *args, **kwargs).arguments
                with children._interposer.without_notes():  # it is not the program that reads all variables
                    environment = dict(os.environ if arguments.get("env") is None else arguments["env"])
                environment.update(children._environment(environment, children._interposer.place()))
            except (TypeError, ValueError, AttributeError):  # the original reports invalid arguments
                return original(self, *args, **kwargs)
            arguments["env"] = environment
            arguments.pop("self")
            return original(self, **arguments)

        subprocess.Popen.__init__ = __init__  # type: ignore[method-assign]

    def _hook_multiprocessing(self, util):
        """Set this environment for spawn and the fork server, which pass it on.

        Their children end by os._exit, without atexit.
        """
        start, children = util.spawnv_passfds, self

        def spawnv_passfds(*args):
            os.environ.update(children._environment(os.environ))
            return start(*args)

        util.spawnv_passfds = spawnv_passfds
        util.register_after_fork(
            self, lambda _: util.Finalize(None, children._interposer.close, exitpriority=-100)
        )

    def _hook_bootstrap(self, module):
        """Wrap BaseProcess._bootstrap, which each process of multiprocessing runs first."""
        original, children = module.BaseProcess._bootstrap, self

        @functools.wraps(original)
        def _bootstrap(*args, **kwargs):
            children._interposer.write_when_terminated()
            return original(*args, **kwargs)

        module.BaseProcess._bootstrap = _bootstrap

    def _before_fork(self):
        self._forked = self._next_position()

    def _in_fork(self):
        self._count = 0
        self._interposer.on_fork(self._forked)
