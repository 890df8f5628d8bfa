"""The recording of a process: its trace file, and the installation and removal of the probes."""

import contextlib
import os
import platform
import sys
import time

import numpy

from .. import backends, errors
from ..command_line import LEVELS
from ..interpose.import_hook import ImportHook
from ..schema import format as trace_format
from ..schema.writer import Writer
from . import digest
from .child_processes import ChildProcesses
from .files import FileAccesses
from .identity import ProcessIdentity
from .lazy_writer import LazyWriter
from .loaded import LoadedArrays
from .pool_tasks import PoolTasks
from .recorder import Recorder

_ENVIRONMENT = ("TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC", "TF_CUDNN_USE_AUTOTUNE", "TF_ENABLE_ONEDNN_OPTS",
                "TF_XLA_FLAGS", "XLA_FLAGS", "PYTHONHASHSEED", "OMP_NUM_THREADS", "TF_NUM_INTEROP_THREADS",
                "TF_NUM_INTRAOP_THREADS", "CUDA_VISIBLE_DEVICES", "CUBLAS_WORKSPACE_CONFIG",
                "HOROVOD_FUSION_THRESHOLD", "TF_USE_LEGACY_KERAS")
_current = []


def end_step_everywhere():
    """End a training step in the current recording, if there is one."""
    for recording in _current:
        recording.step()


def is_recording():
    """Return whether this process is being recorded."""
    return bool(_current)


class Recording(object):
    """The trace of one process, with start() and stop(), or as a context manager.

    out, level, steps, capture, xla, values: as for tfdeterminism.trace.record.
    identity: the identity.ProcessIdentity of a child, whose file is created with its first record; None for the first
    process. with_children: whether the processes that it starts are recorded as well. apply: keys of the solutions
    (trace/remedies.py) that these processes apply.
    """

    def __init__(self, out, level="ops", steps=None, capture=None, xla=None, values=None, identity=None,
                 with_children=False, apply=()):
        if level not in LEVELS:
            raise errors.UsageError("no such level: {}".format(level), "choose one of " + ", ".join(LEVELS))
        self._level = level
        self._steps = steps
        self.capture = capture
        self._values = [] if level == "weights" and values is None else values
        self._apply = list(apply)
        self.xla = level == "none" and xla is not False  # whether the program may compile
        self._imports = ImportHook()
        self._wrappers = None
        self._closers = []
        self._at_exit = []
        self._pid = os.getpid()
        # None until a framework has been imported; labels stays None if its probes could not be installed.
        self.recorder = None  # type: Recorder | None
        self._framework = None  # the name of its module
        self.labels = None  # names and values of the trained variables
        self.identity = identity or ProcessIdentity()
        self._is_child = identity is not None
        self._out = os.path.abspath(out)
        self._tasks = PoolTasks(self)
        self._files = FileAccesses(lambda: 0 if self.recorder is None else self.recorder.definitions.count, self._out)
        self._loaded = LoadedArrays()
        self._children = ChildProcesses(self) if with_children or self._is_child else None
        if not self._is_child:
            _check_new(out, self._path())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, value, stack):
        self.stop(clean=kind is None)

    def start(self):
        """Start now if a framework is loaded, or else as soon as the program imports one."""
        if _current:
            raise errors.UsageError("a trace is being recorded already", "end it first; traces do not nest")
        _current.append(self)
        for probe in (self._tasks, self._files, self._loaded, self._imports):
            probe.open()
        self._imports.add({name: self._install for name in backends.entries()})
        self._imports.add(self._tasks.import_hooks())
        if self._children is not None:
            self._children.open()
            self._imports.add({"multiprocessing.connection": self._children.hook_multiprocessing})

    def stop(self, clean=True, exit_status=None):
        """End the trace with the digest of the final weights, and remove the probes."""
        if self not in _current:
            return
        _current.remove(self)
        self._imports.close()
        self._files.close()
        self._loaded.close()
        if self._children is not None:
            self._children.close()
        try:
            if os.getpid() == self._pid:
                self._end(clean, exit_status)
        finally:
            self._tasks.close()  # the last one: the frameworks' probes wrap the wrappers of the tasks

    def _end(self, clean, exit_status):
        if self.recorder is None:
            if self._is_child or self._children_left_traces():
                return
            self.recorder = self._new_recorder()
        if self.recorder.values is not None and self.labels is not None:
            self.recorder.values.record_final_weights(self.labels.trained_values())
        weights = self.labels.final_digests() if self.labels is not None else {}
        for function in self._at_exit:
            function(weights)
        self.recorder.end(clean, exit_status, digest.digest_parts(weights) if weights else None,
                          {label: "{:016x}".format(value) for label, value in weights.items()},
                          self._files.as_json())
        for close in self._closers:
            close()
        if self._wrappers is not None:
            self._wrappers.undo()

    def step(self):
        if self.recorder is not None:
            self.recorder.steps.end_step()

    # Children

    def child_options(self, role=None):
        """Return the options for recording a child, as JSON values. role: which child it is, or None."""
        return {"out": self._out, "level": self._level, "steps": self._steps, "capture": self.capture,
                "values": self._values, "xla": None if self.xla or self._level != "none" else False,
                "apply": self._apply, "pid": os.getpid(), "identity": self.identity.child_arguments(role)}

    @contextlib.contextmanager
    def quiesced(self):
        """Write all buffered records, and block recording meanwhile."""
        if self.recorder is None:
            yield
        else:
            with self.recorder.quiesced():
                yield

    def flush(self):
        if self.recorder is not None:
            self.recorder.flush()

    def on_fork(self, identity):
        """Continue as the fork of a recorded process."""
        self._pid = os.getpid()
        self.identity, self._is_child = identity, True
        self._files.on_fork()
        if self.recorder is not None:
            self.recorder.on_fork(LazyWriter(self._new_writer, self.recorder.definitions_so_far()))
        if self.labels is not None:
            self.labels.on_fork()

    def _children_left_traces(self):
        """Return whether children left traces in the folder."""
        own_name = os.path.basename(self._path())
        return any(name.endswith(trace_format.EXTENSION) and name != own_name for name in os.listdir(self._out))

    def problem(self):
        """Return (exit code, text) if the trace is incomplete or empty, else None."""
        if self._is_child:
            return None  # a child ends as it would without a trace
        if self.recorder is not None and self.recorder.error:
            return errors.EXIT_INCOMPLETE, None  # the error was logged when it happened
        is_silent = self.recorder is None or not self.recorder.has_seen_ops()
        if self._level != "none" and is_silent and not self._children_left_traces():
            return errors.EXIT_NOTHING_RECORDED, "the program ran no {} op; there is nothing to compare".format(
                backends.labels())
        return None

    def _new_recorder(self):
        # type: () -> Recorder
        try:
            writer = LazyWriter(self._new_writer) if self._is_child else self._new_writer()
            return Recorder(writer, self._out, backends.find(self._framework), self._level, self._steps, self._values,
                            self._loaded.digests)
        except (IOError, OSError) as error:
            raise errors.UsageError("{}: {}".format(self._path(), error.strerror), "name another folder with --out")

    def _new_writer(self):
        """Create the file of this process."""
        number = 1
        while True:
            try:
                return Writer(self._path(number), self._header())
            except FileExistsError:
                if not self._is_child:
                    raise
                number += 1

    def _path(self, number=1):
        """Return the path of this process's file. number: of the process among those of the same name."""
        name = self.identity.name + ("" if number == 1 else "+{}".format(number))
        return os.path.join(self._out, "trace-{}{}".format(name, trace_format.EXTENSION))

    def _header(self):
        return {"framework": self._framework, "version": _version(self._framework), "numpy": numpy.__version__,
                "python": platform.python_version(), "argv": [str(argument) for argument in sys.argv],
                "cwd": os.getcwd(), "level": self._level,
                "steps": list(self._steps) if self._steps else None, "pid": os.getpid(), "rank": self.identity.name,
                "parent": self.identity.parent,  # both are names of processes, see identity.py
                "started": time.time(), "devices": [],  # not known yet; each definition names its own
                "xla": "as the program asks" if self.xla else "switched off where the program asks",
                "environment": {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                "digest": digest.NAME}

    def _install(self, framework):
        if self.recorder is not None:
            return  # the program has two frameworks, and the first is recorded
        self._framework = framework.__name__
        try:
            self.recorder = self._new_recorder()
        except errors.UsageError as error:
            errors.log("{}; the program goes on untraced".format(error))
            _current.remove(self)
            return
        try:
            backends.find(self._framework).install(self)
        except Exception as error:  # an unknown version of the framework must not end the user's program
            self.recorder.fail("{} {} cannot be traced: {}: {}".format(
                backends.find(self._framework).label, framework.__version__, type(error).__name__, error))

    def end_and_exit(self, original, status):
        """End the trace before os._exit, which skips Python's exit handlers."""
        try:
            self.stop(exit_status=status)
        finally:
            original(status)

    def captures_inputs(self):
        """Return whether this process keeps the inputs of an op."""
        if not self.capture:
            return False
        return self.capture["rank"] == self.identity.name or (self.capture["rank"] is None and not self._is_child)

    def add_exit_callback(self, function):
        """Register function({label: digest of a trained weight}) to be called before the trace ends."""
        self._at_exit.append(function)

    def on_installed(self, labels, wrappers, closers, import_hooks):
        """Store the results of a framework's install().

        labels: names and values of the trained variables; wrappers: to undo, and closers: functions to call, when the
        trace ends; import_hooks: {module: function to call with it once it is imported}.
        """
        self.labels, self._wrappers, self._closers = labels, wrappers, closers
        self._imports.add(import_hooks)


def _version(module_name):
    """Return the version of a module that the program has imported, or None."""
    version = getattr(sys.modules.get(module_name), "__version__", None) if module_name else None
    return None if version is None else str(version)  # PyTorch's is a type of its own


def _check_new(out, path):
    """Create the folder. Raises UsageError."""
    try:
        if not os.path.isdir(out):
            os.makedirs(out)
    except OSError as error:
        raise errors.UsageError("{} cannot be made: {}".format(out, error.strerror), "name another folder with --out")
    if os.path.exists(path):
        raise errors.UsageError("{} holds a trace already".format(out), "name a new folder with --out, or remove it")
    if not os.access(out, os.W_OK):
        raise errors.UsageError("{} cannot be written".format(out), "name another folder with --out")
