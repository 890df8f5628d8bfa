"""Recording in this process: where the file lies, when the probes come and go."""

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
    """A training step ends in whatever is being recorded."""
    for recording in _current:
        recording.step()


def is_recording():
    """Is something being recorded?"""
    return bool(_current)


class Recording(object):
    """One process's trace. start() and stop(), or a `with` statement.

    identity: the identity.ProcessIdentity of a child, whose file is made when it has something to tell; else a new one.
    with_children: are the processes that it starts recorded as well? apply: what these apply, see the remedy module.
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
        self.xla = level == "none" and xla is not False
        self._imports = ImportHook()
        self._wrappers = None
        self._closers = []
        self._at_exit = []
        self._pid = os.getpid()
        # None until a framework has been imported; labels stays so where its probes could not be put in.
        self.recorder = None  # type: Recorder | None
        self._framework = None  # the name of its module
        self.labels = None
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
        """Begin now if a framework is there, or else as soon as the program has imported one."""
        if _current:
            raise errors.UsageError("a trace is being recorded already", "end it first; traces do not nest")
        _current.append(self)
        for one in (self._tasks, self._files, self._loaded, self._imports):
            one.open()
        self._imports.add({name: self._install for name in backends.entries()})
        self._imports.add(self._tasks.import_hooks())
        if self._children is not None:
            self._children.open()
            self._imports.add({"multiprocessing.connection": self._children.hook_multiprocessing})

    def stop(self, clean=True, exit_status=None):
        """End the trace with the digest of the final weights, and take the probes away."""
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
            self._tasks.close()  # the frameworks' probes lie around its own, and go before

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
        """How a child of this process is to be recorded, as JSON can say it. role: which one it is, if known."""
        return {"out": self._out, "level": self._level, "steps": self._steps, "capture": self.capture,
                "values": self._values, "xla": None if self.xla or self._level != "none" else False,
                "apply": self._apply, "pid": os.getpid(), "identity": self.identity.child_arguments(role)}

    @contextlib.contextmanager
    def quiesced(self):
        """Nothing is recorded meanwhile, and all is written that was."""
        if self.recorder is None:
            yield
        else:
            with self.recorder.quiesced():
                yield

    def flush(self):
        if self.recorder is not None:
            self.recorder.flush()

    def on_fork(self, identity):
        """This process is a fork of the one that was recorded."""
        self._pid = os.getpid()
        self.identity, self._is_child = identity, True
        self._files.on_fork()
        if self.recorder is not None:
            self.recorder.on_fork(LazyWriter(self._new_writer, self.recorder.definitions_so_far()))
        if self.labels is not None:
            self.labels.on_fork()

    def _children_left_traces(self):
        """Have children left traces?"""
        mine = os.path.basename(self._path())
        return any(name.endswith(trace_format.EXTENSION) and name != mine for name in os.listdir(self._out))

    def problem(self):
        """(exit code, text) if there is something wrong with the trace, else None."""
        if self._is_child:
            return None  # it ends as it would without us
        if self.recorder is not None and self.recorder.error:
            return errors.EXIT_INCOMPLETE, None  # said when it happened
        silent = self.recorder is None or not self.recorder.has_seen_ops()
        if self._level != "none" and silent and not self._children_left_traces():
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
        """The file of this process."""
        number = 1
        while True:
            try:
                return Writer(self._path(number), self._header())
            except FileExistsError:
                if not self._is_child:
                    raise
                number += 1

    def _path(self, number=1):
        """Of this process's file. number: which process of this name it is; two should not have the same."""
        name = self.identity.name + ("" if number == 1 else "+{}".format(number))
        return os.path.join(self._out, "trace-{}{}".format(name, trace_format.EXTENSION))

    def _header(self):
        return {"framework": self._framework, "version": _version(self._framework), "numpy": numpy.__version__,
                "python": platform.python_version(), "argv": [str(one) for one in sys.argv],
                "cwd": os.getcwd(), "level": self._level,
                "steps": list(self._steps) if self._steps else None, "pid": os.getpid(), "rank": self.identity.name,
                "parent": self.identity.parent,
                "started": time.time(), "devices": [],
                "xla": "as the program asks" if self.xla else "switched off where the program asks",
                "environment": {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                "probe": digest.NAME}

    def _install(self, framework):
        if self.recorder is not None:
            return  # it has two: what was there first is what trains
        self._framework = framework.__name__
        try:
            self.recorder = self._new_recorder()
        except errors.UsageError as error:
            errors.log("{}; the program goes on untraced".format(error))
            _current.remove(self)
            return
        try:
            backends.find(self._framework).install(self)
        except Exception as error:  # a version that we do not know must not end the user's program
            self.recorder.fail("{} {} cannot be traced: {}: {}".format(
                backends.find(self._framework).label, framework.__version__, type(error).__name__, error))

    def end_and_exit(self, original, status):
        """os._exit skips what Python does at its end: the trace is ended first."""
        try:
            self.stop(exit_status=status)
        finally:
            original(status)

    def captures_inputs(self):
        """Is it this process that keeps an op's inputs?"""
        if not self.capture:
            return False
        return self.capture["rank"] == self.identity.name or (self.capture["rank"] is None and not self._is_child)

    def add_exit_callback(self, function):
        """function({label: digest}) is told what has been trained, before the trace ends."""
        self._at_exit.append(function)

    def on_installed(self, labels, wrappers, closers, wanted):
        """Called back by a framework's install. labels: what is trained, and how it is called."""
        self.labels, self._wrappers, self._closers = labels, wrappers, closers
        self._imports.add(wanted)


def _version(module):
    """Of what the program has imported, or None."""
    version = getattr(sys.modules.get(module), "__version__", None) if module else None
    return None if version is None else str(version)  # PyTorch's is a type of its own


def _check_new(out, path):
    """Make the folder. Raises UsageError."""
    try:
        if not os.path.isdir(out):
            os.makedirs(out)
    except OSError as error:
        raise errors.UsageError("{} cannot be made: {}".format(out, error.strerror), "name another folder with --out")
    if os.path.exists(path):
        raise errors.UsageError("{} holds a trace already".format(out), "name a new folder with --out, or remove it")
    if not os.access(out, os.W_OK):
        raise errors.UsageError("{} cannot be written".format(out), "name another folder with --out")
