"""The recording of processes that a traced program starts, forks and Python programs, each with its own trace.

A fork keeps the probes that it inherits. A new Python process finds this package's sitecustomize on its PYTHONPATH,
and in an environment variable the options to record with. It loads nothing else until it imports a framework.
"""

import inspect
import json
import os
import subprocess
import threading

from ...wrap import Wrappers
from ..interpose.variables import hooked_path
from .identity import script_of

TRACE_VARIABLE = "TFDET_TRACE"


class ChildProcesses(object):
    """The wrappers around the functions that start processes.

    recording: a recording.Recording, whose child_options() say how its children are recorded.
    """

    def __init__(self, recording):
        self._recording = recording
        self._wrappers = Wrappers()
        self._original_environment = {}
        self._lock = threading.Lock()
        self._forks = 0
        self._started = {}  # script: how many runs of it were started

    def open(self):
        self._original_environment = {name: os.environ.get(name) for name in (TRACE_VARIABLE, "PYTHONPATH")}
        if self._recording.identity.is_final:  # _environment() fixes the name, and a rank may come later
            os.environ.update(self._environment(os.environ))
        for name in ("fork", "forkpty"):
            if hasattr(os, name):
                self._wrappers.wrap(os, name, self._fork)
        self._wrappers.wrap(subprocess.Popen, "__init__", self._popen)

    def close(self):
        self._wrappers.undo()
        for name, value in self._original_environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def hook_multiprocessing(self, module):
        """Flush the trace before each message to another process. module: multiprocessing.connection."""
        def send(original, connection, *args, **kwargs):
            self._recording.flush()
            return original(connection, *args, **kwargs)

        self._wrappers.wrap(module.Connection, "_send_bytes", send)

    def _environment(self, environment, role=None):
        """Return the variables to add to a child's environment. environment: the child's own."""
        options = json.dumps(self._recording.child_options(role))
        return {TRACE_VARIABLE: options, "PYTHONPATH": hooked_path(environment.get("PYTHONPATH", ""))}

    def _fork(self, original):
        with self._lock:
            self._forks += 1
            identity = self._recording.identity.for_fork(self._forks)
        with self._recording.quiesced():  # no thread is in the middle of writing
            result = original()
            if not (result[0] if isinstance(result, tuple) else result):
                self._forks, self._started, self._lock = 0, {}, threading.Lock()
                self._recording.on_fork(identity)
        return result

    def _popen(self, original, popen, *args, **kwargs):
        try:
            bound = inspect.signature(original).bind(popen, *args, **kwargs)
            environment = bound.arguments.get("env")
            child_environment = dict(os.environ if environment is None else environment)
            child_environment.update(self._environment(child_environment, self._child_name(bound.arguments["args"])))
        except (TypeError, ValueError, KeyError, AttributeError):  # Popen itself reports the invalid arguments
            return original(popen, *args, **kwargs)
        bound.arguments["env"] = child_environment
        return original(*bound.args, **bound.kwargs)

    def _child_name(self, command):
        """Return the role of the next child: its script, and its number among the runs of that script."""
        arguments = command.split() if isinstance(command, (str, bytes)) else \
            [command] if hasattr(command, "__fspath__") else list(command)
        script = script_of(arguments)
        with self._lock:
            self._started[script] = number = self._started.get(script, 0) + 1
        return "{}-{}".format(script, number)
