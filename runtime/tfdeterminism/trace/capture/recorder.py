"""One process's trace: gives out key ids, counts steps, and writes what the back ends observe."""

import contextlib
import os
import threading

import numpy

from .. import errors
from ..analyse import format as trace_format
from ..analyse.writer import Writer
from . import digest

_EAGER_BUFFER = 256  # records; what a killed program may lose
_NTH_LIMIT = 4096    # eager ops of one line and type in one step that get keys of their own


class Recorder(object):
    """level: one of usage.LEVELS. steps: (first, end) to record, or None for all. Thread-safe."""

    def __init__(self, path, header, level="ops", steps=None):
        self.level = level
        self.steps = steps
        self.step = 0
        self.active = True
        self.error = None
        self.lock = threading.RLock()
        self.local = threading.local()
        self.folder = os.path.dirname(path)
        self.seen_ops = False
        self._pid = os.getpid()
        self._writer = Writer(path, header)
        self._pending, self._buffer = [], []
        self._count = 0
        self._occurrences = numpy.zeros(1024, numpy.uint32)
        self._eager_keys, self._eager_inputs, self._nth = {}, {}, {}
        self._traces, self._labels, self._by_inputs = {}, {}, {}
        self.session = None          # the session that ran last
        self._manual_steps = self._applied = self._gradient = self._ends = False
        self._at_step = []

    # Keys

    @contextlib.contextmanager
    def unseen(self):
        """What this thread runs meanwhile is not the program's own, and is not recorded."""
        before, self.local.busy = getattr(self.local, "busy", False), True
        try:
            yield
        finally:
            self.local.busy = before

    def new_key(self, **fields):
        """A fresh id, to be defined now."""
        with self.lock:
            number = self._count
            self._count += 1
            if number >= len(self._occurrences):
                self._occurrences = numpy.concatenate([self._occurrences, numpy.zeros_like(self._occurrences)])
            self._pending.append(trace_format.definition(number, **fields))
            return number

    def redefine(self, number, **fields):
        """What is known of this id now."""
        with self.lock:
            self._pending.append(trace_format.definition(number, **fields))

    def eager_key(self, op, stack, output, thread, replica, inputs, nth, **fields):
        """The id of an eager op's output: by type, the user's line, and how many such came in this step."""
        place = "{}:{}".format(stack[0][0], stack[0][1]) if stack else "?"
        name = (thread, replica, op, place, nth, output)
        with self.lock:
            number = self._eager_keys.get(name)
            if number is None:
                number = self.new_key(op=op, node="{}@{}#{}".format(op, place, nth), output=output, thread=thread,
                                      replica=replica, stack=stack, file=stack[0][0] if stack else None,
                                      line=stack[0][1] if stack else 0, inputs=sorted(set(inputs)), **fields)
                self._eager_keys[name] = number
                self._eager_inputs[number] = (self._pending[-1], set(inputs))
                self._by_inputs[op, tuple(inputs)] = self.described(number)
                return number
            definition, known = self._eager_inputs[number]
            if not known.issuperset(inputs) and len(known) < 64:  # it is fed from elsewhere this time
                known.update(inputs)
                definition["inputs"] = sorted(known)
                self._pending.append(dict(definition))
            return number

    def described(self, key):
        """(node, stack) of an eager op's output."""
        definition = self._eager_inputs[key][0]
        return definition["node"], definition["stack"]

    def name_variable(self, keys, label):
        """What these eager ops read or wrote has got its name."""
        with self.lock:
            for key in keys:
                definition = self._eager_inputs[key][0]
                definition["variable"] = label
                self._pending.append(dict(definition))

    def fed_by(self, op, inputs):
        """(node, stack) of an eager op of that type with these inputs, or None."""
        return self._by_inputs.get((op, tuple(inputs)))

    def nth(self, *name):
        """How often this name was asked for in this step, from 0."""
        with self.lock:
            count = self._nth.get(name, 0)
            self._nth[name] = count + 1
            return min(count, _NTH_LIMIT)

    def trace_number(self, function):
        """How many functions of this name were traced before."""
        with self.lock:
            number = self._traces.get(function, 0)
            self._traces[function] = number + 1
            return number

    def label(self, name):
        """A name for a variable that no other has."""
        with self.lock:
            number = self._labels.get(name, 0)
            self._labels[name] = number + 1
            return "{}#{}".format(name, number) if number else name

    # Records

    def wants(self):
        """Is this step recorded?"""
        return self.active and (self.steps is None or self.steps[0] <= self.step < self.steps[1])

    def emit(self, keys, digests, shapes=None):
        """keys: array of different ids; digests: array of uint64; shapes: array of CRCs or None for unknown."""
        with self.lock:
            if not self.wants() or not self._ours():
                return
            self._flush_buffer()
            records = numpy.zeros(len(keys), trace_format.EVENT)
            records["key"] = keys
            records["digest"] = digests
            records["step"] = self.step
            if shapes is not None:
                records["shape"] = shapes
            records["occurrence"] = self._occurrences[keys]
            self._occurrences[keys] += 1
            self._write(records)

    def emit_one(self, key, value, shape=0):
        """One record, kept back for a while: eager ops come one by one."""
        with self.lock:
            if not self.wants():
                return
            self._buffer.append((value, key, self.step, self._occurrences[key], shape))
            self._occurrences[key] += 1
            if len(self._buffer) >= _EAGER_BUFFER:
                self._flush_buffer()

    def occurrences(self, key):
        """How many records of this key there are."""
        return int(self._occurrences[key])

    def flush(self):
        with self.lock:
            if self.active and self._ours():
                self._flush_buffer()
                self._write(None)

    def note(self, kind, text):
        self._guarded(lambda: self._writer.note(kind, text))

    def captured(self, key, occurrence, step, name):
        self._guarded(lambda: (self._define(), self._writer.capture(key, occurrence, step, name)))

    # Steps

    def next_step(self):
        """trace.step(): from now on the program says where a step ends, and nobody guesses."""
        with self.lock:
            # The program's first step may have been guessed already, and then this is its end too.
            if self._manual_steps or not self.step:
                self._advance()
            self._manual_steps = True

    def applied(self):
        """An optimizer has updated its variables, and the caller is back in Python."""
        with self.lock:
            self._applied = True
            self._gradient = False
            if not self._manual_steps:
                self._advance()

    def gradient(self):
        """A gradient is about to be computed: without an optimizer this is what separates steps."""
        with self.lock:
            if self._gradient and not self._applied and not self._manual_steps:
                self._advance()
            self._gradient = True

    def loop_step(self):
        """One iteration of a loop in a graph that holds a training step has run."""
        self._ends = False
        self.applied()

    def inner_step(self):
        """A graph function that holds a training step has run; the step ends with the outermost call."""
        self._ends = True

    def call_ended(self):
        """An outermost call of a graph function has ended."""
        if self._ends:
            self._ends = False
            self.applied()

    def at_step(self, function):
        """function() is called at the end of each recorded step."""
        self._at_step.append(function)

    def _advance(self):
        if self.wants():
            for function in self._at_step:
                function()
        self.flush()
        self.step += 1
        self._nth.clear()

    # The end

    def end(self, clean, exit_status, weights, variables):
        """Write the last block. weights: hex digits or None; variables: {label: hex digits}."""
        with self.lock:
            if self._ours():
                self.flush()
                self._guarded(lambda: self._writer.end(clean=clean, exit=exit_status, weights=weights,
                                                       variables=variables, steps=self.step, error=self.error))
                self._writer.close()
            self.active = False

    @property
    def records(self):
        return self._writer.records

    @property
    def size(self):
        """Bytes written."""
        return self._writer.size

    def _ours(self):
        """A forked child must not write into its parent's file."""
        if os.getpid() == self._pid:
            return True
        self.active = False
        return False

    def _define(self):
        pending, self._pending = self._pending, []
        self._writer.define(pending)

    def _flush_buffer(self):
        if self._buffer:
            records = numpy.array(self._buffer, trace_format.EVENT)
            self._buffer = []
            self._write(records)

    def _write(self, records):
        def write():
            self._define()
            if records is not None:
                self._writer.events(records)
                self.seen_ops = True
        self._guarded(write)

    def _guarded(self, write):
        """A full disk ends the trace, not the program: what was written stays readable."""
        with self.lock:
            if not self.active or not self._ours():
                return
            try:
                write()
            except (IOError, OSError) as error:
                self.fail("{}: {}".format(self._writer.path, error.strerror or error))

    def fail(self, reason):
        """Nothing more is recorded; said once."""
        self.active = False
        self.error = reason
        errors.say("{}; the program goes on, and its trace ends at step {}".format(reason, self.step))


def of_value(array):
    """(digest, CRC of the shape) of a NumPy array."""
    return digest.of_array(array), digest.of_shape(array.shape)
