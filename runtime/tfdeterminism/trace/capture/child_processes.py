"""The processes that a traced program starts: forks of it, and Pythons that it runs. Each writes a trace of its own.

A fork goes on with the probes that it has inherited. What is executed anew finds a sitecustomize of ours on its
PYTHONPATH, and in a variable what it shall do when it imports a framework; until then it loads nothing of us.
"""

import inspect
import json
import os
import subprocess
import threading

from ...wrap import Wrappers
from ..interpose.variables import hooked_path
from .identity import script_of

VARIABLE = "TFDET_TRACE"


class ChildProcesses(object):
    """recording: a recording.Recording, which says how its children are to be recorded: child_options()."""

    def __init__(self, recording):
        self._recording = recording
        self._wrappers = Wrappers()
        self._before = {}
        self._lock = threading.Lock()
        self._forks = 0
        self._started = {}  # script: how many runs of it were started

    def open(self):
        self._before = {name: os.environ.get(name) for name in (VARIABLE, "PYTHONPATH")}
        if self._recording.identity.is_final:
            os.environ.update(self._environment(os.environ))
        for name in ("fork", "forkpty"):
            if hasattr(os, name):
                self._wrappers.wrap(os, name, self._fork)
        self._wrappers.wrap(subprocess.Popen, "__init__", self._popen)

    def close(self):
        self._wrappers.undo()
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def hook_multiprocessing(self, module):
        """multiprocessing.connection: what another process is told was written down before."""
        def send(original, connection, *args, **kwargs):
            self._recording.flush()
            return original(connection, *args, **kwargs)

        self._wrappers.wrap(module.Connection, "_send_bytes", send)

    def _environment(self, of, role=None):
        """What a child's environment must say. of: the environment that it would have had."""
        options = json.dumps(self._recording.child_options(role))
        return {VARIABLE: options, "PYTHONPATH": hooked_path(of.get("PYTHONPATH", ""))}

    def _fork(self, original):
        with self._lock:
            self._forks += 1
            identity = self._recording.identity.for_fork(self._forks)
        with self._recording.quiesced():  # nobody is in the middle of writing
            result = original()
            if not (result[0] if isinstance(result, tuple) else result):
                self._forks, self._started, self._lock = 0, {}, threading.Lock()
                self._recording.on_fork(identity)
        return result

    def _popen(self, original, popen, *args, **kwargs):
        try:
            bound = inspect.signature(original).bind(popen, *args, **kwargs)
            environment = bound.arguments.get("env")
            given = dict(os.environ if environment is None else environment)
            given.update(self._environment(given, self._child_name(bound.arguments["args"])))
        except (TypeError, ValueError, KeyError, AttributeError):  # it says by itself what is wrong
            return original(popen, *args, **kwargs)
        bound.arguments["env"] = given
        return original(*bound.args, **bound.kwargs)

    def _child_name(self, command):
        """Which of this process's children it will be: by its script, and the how manieth of that."""
        words = command.split() if isinstance(command, (str, bytes)) else \
            [command] if hasattr(command, "__fspath__") else list(command)
        script = script_of(words)
        with self._lock:
            self._started[script] = number = self._started.get(script, 0) + 1
        return "{}-{}".format(script, number)
