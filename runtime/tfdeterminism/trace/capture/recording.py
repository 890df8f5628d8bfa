"""Recording in this process: where the file lies, when the probes come and go."""

import os
import platform
import re
import sys
import time

import numpy

from .. import errors
from ..analyse import format as trace_format
from ..usage import LEVELS
from . import digest
from .imports import AfterImport
from .recorder import Recorder

_ENVIRONMENT = ("TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC", "TF_CUDNN_USE_AUTOTUNE", "TF_ENABLE_ONEDNN_OPTS",
                "TF_XLA_FLAGS", "XLA_FLAGS", "PYTHONHASHSEED", "OMP_NUM_THREADS", "TF_NUM_INTEROP_THREADS",
                "TF_NUM_INTRAOP_THREADS", "CUDA_VISIBLE_DEVICES", "CUBLAS_WORKSPACE_CONFIG",
                "HOROVOD_FUSION_THRESHOLD", "TF_USE_LEGACY_KERAS")
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK", "SLURM_PROCID")
_current = []


def step_all():
    """A training step ends in whatever is being recorded."""
    for recording in _current:
        recording.step()


class Recording(object):
    """One process's trace. start() and stop(), or a `with` statement."""

    def __init__(self, out, level="ops", steps=None, capture=None, xla=None, values=None):
        if level not in LEVELS:
            raise errors.BadUsage("no such level: {}".format(level), "choose one of " + ", ".join(LEVELS))
        self._level = level
        self._steps = steps
        self.capture = capture
        self._values = [] if level == "weights" and values is None else values
        self.xla = level == "none" and xla is not False
        self._imports = AfterImport()
        self._wrappers = None
        self._closers = []
        self._pid = os.getpid()
        # None until TensorFlow has been imported; labels stays so where its probes could not be put in.
        self.recorder = None  # type: Recorder | None
        self.labels = None
        self.rank = rank()
        self.path = _path(out, self.rank)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, value, stack):
        self.stop(clean=kind is None)

    def start(self):
        """Begin now if TensorFlow is there, or else as soon as the program has imported it."""
        if _current:
            raise errors.BadUsage("a trace is being recorded already", "end it first; traces do not nest")
        _current.append(self)
        self._imports.open()
        self._imports.add({"tensorflow": self._install})

    def stop(self, clean=True, exit_status=None):
        """End the trace with the digest of the final weights, and take the probes away."""
        if self not in _current:
            return
        _current.remove(self)
        self._imports.close()
        if os.getpid() != self._pid:
            return
        if self.recorder is None:
            self.recorder = self._new_recorder(None)
        if self.recorder.values is not None and self.labels is not None:
            self.recorder.values.final_weights(self.labels.values())
        weights = self.labels.all_final() if self.labels is not None else {}
        self.recorder.end(clean, exit_status, digest.of_parts(weights) if weights else None,
                          {label: "{:016x}".format(value) for label, value in weights.items()})
        for close in self._closers:
            close()
        if self._wrappers is not None:
            self._wrappers.undo()

    def step(self):
        if self.recorder is not None:
            self.recorder.steps.next()

    def complaint(self):
        """(exit code, text) if there is something wrong with the trace, else None."""
        if self.recorder is not None and self.recorder.error:
            return errors.INCOMPLETE, None  # said when it happened
        if self._level != "none" and (self.recorder is None or not self.recorder.seen_ops):
            return errors.NOTHING, "the program ended, and no TensorFlow op was seen: there is nothing to compare"
        return None

    def _new_recorder(self, tensorflow):
        # type: (str | None) -> Recorder
        try:
            return Recorder(self.path, self._header(tensorflow), self._level, self._steps, self._values)
        except (IOError, OSError) as error:
            raise errors.BadUsage("{}: {}".format(self.path, error.strerror), "name another folder with --out")

    def _header(self, tensorflow):
        return {"tensorflow": tensorflow, "numpy": numpy.__version__, "python": platform.python_version(),
                "argv": [str(one) for one in sys.argv], "cwd": os.getcwd(), "level": self._level,
                "steps": list(self._steps) if self._steps else None, "pid": os.getpid(), "rank": self.rank,
                "started": time.time(), "devices": [],
                "xla": "as the program asks" if self.xla else "switched off where the program asks",
                "environment": {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                "probe": "farmhash64 on CPU, weighted integer sum on GPU; children started by fork or exec are not "
                         "traced"}

    def _install(self, tensorflow):
        try:
            self.recorder = self._new_recorder(tensorflow.__version__)
        except errors.BadUsage as error:
            errors.say("{}; the program goes on untraced".format(error))
            _current.remove(self)
            return
        try:
            from .tensorflow import install
            install.install(self)
        except Exception as error:  # a TensorFlow that we do not know must not end the user's program
            self.recorder.fail("{} cannot be traced: {}: {}".format(
                "TensorFlow " + str(tensorflow.__version__), type(error).__name__, error))

    def installed(self, labels, wrappers, closers, wanted):
        """Called back by tensorflow.install."""
        self.labels, self._wrappers, self._closers = labels, wrappers, closers
        self._imports.add(wanted)


def rank():
    """What tells this process from others of the same program: a job name and number, or "0"."""
    task = re.search(r'"task"\s*:\s*\{[^}]*\}', os.environ.get("TF_CONFIG", ""))
    if task:
        kind = re.search(r'"type"\s*:\s*"(\w+)"', task.group(0))
        number = re.search(r'"index"\s*:\s*"?(\d+)', task.group(0))
        if kind and number:
            return kind.group(1) + number.group(1)
    for name in _RANKS:
        if os.environ.get(name, "").isdigit():
            return os.environ[name]
    return "0"


def _path(out, name):
    try:
        if not os.path.isdir(out):
            os.makedirs(out)
    except OSError as error:
        raise errors.BadUsage("{} cannot be made: {}".format(out, error.strerror), "name another folder with --out")
    path = os.path.join(os.path.abspath(out), "trace-{}{}".format(name, trace_format.EXTENSION))
    if os.path.exists(path):
        raise errors.BadUsage("{} holds a trace already".format(out), "name a new folder with --out, or remove it")
    if not os.access(out, os.W_OK):
        raise errors.BadUsage("{} cannot be written".format(out), "name another folder with --out")
    return path
