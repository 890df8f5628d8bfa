"""The recorder of a process, which writes what the probes of a framework observe into its trace."""

import array
import contextlib
import os
import threading
import time

import numpy

from .. import errors
from ..schema.format import RECORD_DTYPE
from .definitions import Definitions
from .eager_keys import EagerKeys
from .source_lines import SourceLines
from .steps import Steps
from .value_recorder import ValueRecorder

_EAGER_BUFFER = 256  # records, which a killed program may lose
_TICK = 0.02         # seconds: resolution of the times of records, by which processes are compared


class Recorder(object):
    """Writes the definitions, digests and values of one process. Thread-safe.

    A record is the digest of one output in one step; its key is the id of the definition that describes the output.

    writer: a Writer or LazyWriter; folder: where files beside the trace go; backend: the framework's backends.Backend;
    level: one of command_line.LEVELS; window: (first, end) of the steps to record, or None for all; values: which
    values to store, as value_recorder.parse() returns it, or None; loaded: digests of arrays that were read from files.
    """

    def __init__(self, writer, folder, backend, level="ops", window=None, values=None, loaded=()):
        self.level = level
        self.folder = folder
        self.active = True
        self.error = None
        self.seen_ops = False
        self.local = threading.local()
        self._lock = threading.RLock()
        self.steps = Steps(self._lock, window, self._step_ended)
        self.definitions = Definitions(self._lock, backend)
        self.eager = EagerKeys(self._lock, self.definitions)
        self.values = None if values is None else ValueRecorder(self, values, self._lock)
        self._pid = os.getpid()
        self._loaded = loaded
        self.first_own_id = 0  # smaller ids were defined by the parent of a fork
        self._writer = writer
        self._sources = SourceLines()
        self._buffer = array.array("Q")  # four numbers of each record
        self._since = self._marked = 0.0  # time of the buffer's first record, and the last time that was written
        self._occurrences = numpy.zeros(1024, numpy.uint32)  # by key
        self._at_step = []

    @contextlib.contextmanager
    def unrecorded(self):
        """Do not record what this thread runs in the block, because it is not the program's own."""
        was_busy, self.local.busy = getattr(self.local, "busy", False), True
        try:
            yield
        finally:
            self.local.busy = was_busy

    def has_seen_ops(self):
        """Return whether the program has run any op, recorded or not."""
        return self.seen_ops or bool(self._buffer)

    def is_recording_step(self):
        """Return whether the current step is recorded."""
        return self.active and self.steps.is_recorded()

    def emit(self, keys, digests, shapes=None):
        """Record several outputs.

        keys: array of distinct ids; digests: array of uint64; shapes: array of CRCs, or None if unknown.
        """
        with self._lock:
            if not self.is_recording_step() or not self._is_own_process():
                return
            self._flush_buffer()
            self._since = time.time()
            records = numpy.zeros(len(keys), RECORD_DTYPE)
            records["key"] = keys
            records["digest"] = digests
            records["step"] = self.steps.number
            if shapes is not None:
                records["shape"] = shapes
            self._reserve()
            records["occurrence"] = self._count_distinct(keys)
            self._write(records)

    def emit_one(self, key, value, shape=0):
        """Buffer one record, because eager ops come one by one. value: the digest of the output."""
        with self._lock:
            if not self.is_recording_step():
                return
            now = time.time()  # records that are written together share a time
            if len(self._buffer) >= 4 * _EAGER_BUFFER or self._buffer and now - self._since > _TICK:
                self._flush_buffer()
            if not self._buffer:
                self._since = now
            self._buffer.extend((value, key, self.steps.number, shape))

    def mark_loaded(self, key, value):
        """Mark a value from Python, of digest `value`, if it equals an array that was read from a file."""
        if value in self._loaded:
            self.eager.add_attrs(key, from_file=True)

    @contextlib.contextmanager
    def quiesced(self):
        """Write all buffered records and hold the lock, so that the process may be forked."""
        with self._lock:
            self._flush()
            yield

    def flush(self):
        with self._lock:
            if self.active and self._buffer and self._is_own_process():
                self._flush_buffer()

    def definitions_so_far(self):
        """Return the function with which the LazyWriter of a fork begins its file."""
        return self._writer.definitions()

    def on_fork(self, writer):
        """Start the records of a fork; its definitions stay."""
        self._writer.close()
        self._writer, self._pid = writer, os.getpid()
        self._buffer, self._marked = array.array("Q"), 0.0
        self._occurrences = numpy.zeros_like(self._occurrences)
        self.first_own_id = self.definitions.count
        self.seen_ops = False
        self.steps.reset()
        self.eager.on_step_end()

    def _reserve(self):
        while self.definitions.count > len(self._occurrences):
            self._occurrences = numpy.concatenate([self._occurrences, numpy.zeros_like(self._occurrences)])

    def note(self, kind, text):
        self._guarded(lambda: self._writer.note(kind, text))

    def note_capture(self, key, occurrence, step, name):
        self._guarded(lambda: (self._define(), self._writer.capture(key, occurrence, step, name)))

    def write_value(self, payload):
        """Write a value, packed by tensor_values.pack()."""
        self._guarded(lambda: (self._define(), self._writer.value(payload)))

    def add_step_callback(self, function):
        """Register function(), called at the end of each recorded step."""
        self._at_step.append(function)

    def _step_ended(self):
        if self.is_recording_step():
            for function in self._at_step:
                function()
        self._flush()
        self.eager.on_step_end()

    def end(self, clean, exit_status, weights, variables, files):
        """Write the last block.

        weights: hex digits or None; variables: {label: hex digits}; files: the result of FileAccesses.as_json().
        """
        with self._lock:
            if self._is_own_process():
                self._flush()
                self._guarded(lambda: self._writer.end(clean=clean, exit=exit_status, weights=weights,
                                                       variables=variables, steps=self.steps.last, error=self.error,
                                                       files=files))
                self._writer.close()
            self.active = False

    def _is_own_process(self):
        """Return False, and stop recording, in a fork that must not write into its parent's file."""
        if os.getpid() == self._pid:
            return True
        self.active = False
        return False

    def _flush(self):
        if self.active and self._is_own_process():
            self._flush_buffer()
            self._write(None)

    def _define(self):
        definitions = self.definitions.pop_unwritten()
        self._writer.define(definitions)
        self._writer.source(self._sources.new_lines(definitions))

    def _flush_buffer(self):
        if self._buffer:
            columns = numpy.frombuffer(self._buffer, numpy.uint64).reshape(-1, 4).T
            self._buffer = array.array("Q")
            records = numpy.zeros(columns.shape[1], RECORD_DTYPE)
            for name, column in zip(("digest", "key", "step", "shape"), columns):
                records[name] = column
            self._reserve()
            records["occurrence"] = self._count_occurrences(records["key"])
            self._write(records)

    def _count_distinct(self, keys):
        """Return the occurrence of each of several distinct keys."""
        occurrences = self._occurrences[keys]
        self._occurrences[keys] += 1
        return occurrences

    def _count_occurrences(self, keys):
        """Return the occurrence of each key; the keys may contain duplicates."""
        if len(set(keys.tolist())) == len(keys):  # nearly always, and much faster
            return self._count_distinct(keys)
        order = numpy.argsort(keys, kind="mergesort")  # stable
        ordered = keys[order]
        begins = numpy.flatnonzero(numpy.concatenate([[True], ordered[1:] != ordered[:-1]]))
        counts = numpy.diff(numpy.append(begins, len(keys)))
        occurrences = numpy.empty(len(keys), numpy.uint32)
        occurrences[order] = numpy.arange(len(keys)) - numpy.repeat(begins, counts) + self._occurrences[ordered]
        self._occurrences[ordered[begins]] += counts.astype(numpy.uint32)
        return occurrences

    def _write(self, records):
        def write():
            self._define()
            if records is not None:
                if self._since - self._marked > _TICK:
                    self._writer.time(self._since)
                    self._marked = self._since
                self._writer.events(records)
                self.seen_ops = True
        self._guarded(write)

    def _guarded(self, write):
        """Call write(); a failure, such as a full disk, ends the trace but not the program."""
        with self._lock:
            if not self.active or not self._is_own_process():
                return
            try:
                write()
            except (IOError, OSError) as error:
                self.fail("{}: {}".format(self._writer.path, error.strerror or error))

    def fail(self, reason):
        """Stop recording, and log the reason."""
        self.active = False
        self.error = reason
        errors.log("{}; the program goes on, and its trace ends at step {}".format(reason, self.steps.number))
