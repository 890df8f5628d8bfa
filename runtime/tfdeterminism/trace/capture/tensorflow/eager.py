"""Ops that run one by one: op_callbacks from TF 2.1 on, post-execution callbacks before."""

import contextlib
import threading

from .. import digest, pool_tasks, user_frames
from ..eager_keys import CallerIdentity
from . import digests, op_traits, pipelines
from . import internals as tf

_FAST = 1 << 16  # bytes; above, TensorFlow's Fingerprint pays for its call
_SKIPPED = (tf.dtypes.resource, tf.dtypes.variant)
_NO_VALUE = tuple(one.name for one in _SKIPPED)


class EagerRecorder(object):
    """Records the outputs of eager ops, and the values that come to them from Python."""

    def __init__(self, recorder, keys, labels, capture, gradients, wrappers):
        self._recorder = recorder
        self._keys = keys
        self._labels = labels
        self._capture, self._gradients = capture, gradients
        self._stop = None
        wrappers.wrap(tf.constant_op, "convert_to_eager_tensor", self._converted)
        if tf.op_callbacks is not None:
            self._stop = _op_callbacks(self._callback, wrappers)
        else:
            wrappers.set(tf.execute, "execute", tf.execute.execute_with_callbacks)
            if tf.context.context_safe() is not None:
                tf.context.context().add_post_execution_callback(self._post_execution)
            else:  # to make it is the program's: it says with it whether it is eager
                wrappers.wrap(tf.context.Context, "__init__", self._context)

    def close(self):
        context = tf.context.context_safe()
        if self._stop is not None:
            self._stop()
        elif context is not None and self._post_execution in context.post_execution_callbacks:
            context.post_execution_callbacks.remove(self._post_execution)

    @contextlib.contextmanager
    def install_in_thread(self):
        """A thread of TensorFlow's own has no callback."""
        if tf.op_callbacks is None or self._callback in tf.context.context().op_callbacks:
            yield
            return
        tf.context.context().add_op_callback(self._callback)
        try:
            yield
        finally:
            tf.context.context().remove_op_callback(self._callback)

    def arguments(self, body, values):
        """What a graph hands to a Python function: values that its caller explains."""
        with self._recorder.unrecorded():
            for index, value in enumerate(values if self._recorder.is_recording_step() else ()):
                if value.dtype.name not in _NO_VALUE:
                    self._argument(body, index, value)

    def _argument(self, body, index, value):
        key = self._recorder.eager.key("_Arg", body.stack, index, _who(body), [], 0, kind="argument",
                                       attrs={"argument_index": index}, dtype=value.dtype.name)
        body.add_input(key)
        if tf.is_eager(value):
            value._tfdet_key = (self._recorder, key)
            self._emit(key, value)
        else:
            self._recorder.emit_one(key, digest.digest_array(value), digest.digest_shape(value.shape))

    def _converted(self, original, value, *args, **kwargs):
        """A tensor of a value from Python is made by no op: it is recorded where one gets it, but is from here."""
        made, recorder = original(value, *args, **kwargs), self._recorder
        records = recorder.is_recording_step() or recorder.steps.starts_later(1)
        if recorder.level == "ops" and records and tf.is_eager(made) \
                and not getattr(recorder.local, "busy", False) and not hasattr(made, "_tfdet_given"):
            made._tfdet_given = user_frames.stack_of_caller()
        return made

    def _context(self, original, context, *args, **kwargs):
        original(context, *args, **kwargs)
        context.add_post_execution_callback(self._post_execution)

    def _post_execution(self, op_type, inputs, attrs, outputs, name):
        self._guarded(op_type, inputs, attrs, outputs)

    def _callback(self, op_type, inputs, attrs, outputs, op_name=None, graph=None):
        if graph is None:
            self._guarded(op_type, inputs, attrs, outputs)
        return None  # no output is ever replaced

    def _guarded(self, op_type, inputs, attrs, outputs):
        local = self._recorder.local
        if not self._recorder.active or getattr(local, "busy", False):
            return
        local.busy = True
        try:
            name = op_type.decode("utf-8") if isinstance(op_type, bytes) else op_type
            called = self._keys.find_function(name)
            if self._recorder.level == "ops" and self._recorder.is_recording_step():
                self._observe(name, called, list(inputs or ()), attrs, outputs)
            elif self._recorder.level == "ops" and self._recorder.steps.starts_later():
                self._remember(name, inputs or (), outputs)
            self._recorder.seen_ops = True
            if called is not None:
                self._recorder.steps.on_call_end()
        finally:
            local.busy = False

    def _observe(self, op_type, called, inputs, attrs, outputs):
        body = getattr(self._recorder.local, "body", None)
        stack, who = _place(body), _who(body)
        kind = "call" if called else op_traits.definition_kind(op_type)
        short = op_traits.without_uid(op_type) if called else op_type
        nth = self._nth(body, who, short, stack)
        variable = self._labels.find_eager_label(inputs[0]) if inputs and op_traits.accesses_variable(op_type) else None
        written = variable if kind == "write" else None
        fed = [self._input(tensor, stack, who, body, written) for tensor in inputs]
        fed = [key for key in fed if key is not None]
        forward, forward_stack = getattr(self._recorder.local, "forward", (None, []))
        fields = dict(kind=kind, calls=self._calls(called, op_type, attrs), forward=forward,
                      forward_stack=forward_stack, attrs=_seeds(attrs) if kind == "random"
                      else pipelines.eager_op_traits(op_type, attrs, inputs),
                      variable=variable)
        made = []
        for index, tensor in enumerate(outputs if isinstance(outputs, (list, tuple)) else ()):
            if not tf.is_eager(tensor):
                continue
            probed = not (tensor.dtype in _SKIPPED or op_type in op_traits.ALIASES or op_type in op_traits.SHAPES)
            key = self._recorder.eager.key(short, stack, index, who, fed, nth,
                                           dtype=tensor.dtype.name, shape=None, device=tensor.device or "",
                                           recorded=probed, **fields)
            tensor._tfdet_key = (self._recorder, key)
            made.append(key)
            if probed:
                self._emit(key, tensor, index)
        if (kind == "write" or fields["calls"]) and not made:  # a call without results still passes values in
            made.append(self._recorder.eager.key(short, stack, -1, who, fed, nth, recorded=kind == "write", **fields))
            if kind == "write":
                self._recorder.emit_one(made[0], 0)
        if op_traits.accesses_variable(op_type) and inputs and variable is None:
            self._labels.defer(inputs[0], made)
        if op_type == "MakeIterator" and len(fed) == 2:  # it puts out nothing, and the iterator is over the dataset
            self._recorder.eager.add_inputs(fed[1], fed[0])
        if made:
            self._gradients.on_op_run(attrs, made[0])
        if made and self._capture is not None and not called:
            self._keep(made, op_type, inputs, attrs, outputs)
        if body is not None:
            body.add_outputs(made)

    def _calls(self, called, op_type, attrs):
        if op_type in op_traits.PYTHON:
            attrs = list(attrs or ())
            known = self._keys.python_function(dict(zip(attrs[::2], attrs[1::2])).get("token", ""))
            return [list(known[0])] if known else []
        return [list(called)] if called else []

    def _nth(self, body, who, source, stack):
        counter = self._recorder.eager if body is None else body
        return counter.next_occurrence(who, source, tuple(stack[0][:2]) if stack else ())

    def _keep(self, made, op_type, inputs, attrs, outputs):
        name = self._recorder.eager.name_of(made[0])
        if self._capture.is_wanted(*name):
            values = [None if one.dtype in _SKIPPED else one.numpy() for one in inputs]
            self._capture.capture_eager(made[0], name, op_type, inputs, attrs, list(outputs or ())[:len(made)], values)

    def _input(self, tensor, stack, who, body, written):
        """The key of an op's input; a value that no op made came from Python, and is recorded here. written: the
        variable that the op has written."""
        known = getattr(tensor, "_tfdet_key", None)
        if known is not None and known[0] is self._recorder and known[1] >= self._recorder.first_own_id:
            return known[1]
        if not tf.is_eager(tensor) or tensor.dtype in _SKIPPED:
            return None
        source, stack, fields = self._origin(tensor, stack, written)
        nth = self._nth(body, who, source, stack)
        known = body.inputs_so_far() if body is not None and source == "Python" else []
        key = self._recorder.eager.key(source, stack, 0, who, known, nth, dtype=tensor.dtype.name,
                                       device=tensor.device or "", **fields)
        tensor._tfdet_key = (self._recorder, key)
        self._emit(key, tensor)
        return key

    def _origin(self, tensor, stack, written):
        """(source, stack, fields) of a value that no op that was recorded has made. What was written shares the memory
        of the variable that it was written into: it came from elsewhere."""
        variable = self._labels.owner_of(tensor)
        if variable is not None and variable != written:  # TensorFlow's fast path reads a variable without telling
            return "ReadVariableOp", stack, {"kind": "read", "variable": variable}
        made = getattr(tensor, "_tfdet_made", None)
        if made is None and hasattr(tensor, "_tfdet_key") and tensor._tfdet_key[0] is self._recorder:
            node, made_by = self._recorder.eager.describe(tensor._tfdet_key[1])  # before this process was forked
            made = node.partition("@")[0], made_by
        if made is not None and made[0] != "Python":
            return made[0], made[1], {"kind": "op", "attrs": {"preexisting": True}}
        stack = getattr(tensor, "_tfdet_given", None) or (made[1] if made is not None else stack)
        return "Python", stack, {"kind": "feed", "attrs": {"created_by": "keras"} if user_frames.in_keras() else {}}

    def _remember(self, op_type, inputs, outputs):
        """Who has made these before recording begins; of what comes from Python, which line first used it."""
        stack = user_frames.stack_of_caller()
        if self._recorder.steps.starts_later(1):
            for tensor in inputs:
                if tf.is_eager(tensor) and tensor.dtype not in _SKIPPED and not hasattr(tensor, "_tfdet_made") \
                        and self._labels.owner_of(tensor) is None:
                    tensor._tfdet_made = ("Python", stack)
        for tensor in outputs if isinstance(outputs, (list, tuple)) else ():
            if tf.is_eager(tensor):
                tensor._tfdet_made = (op_traits.without_uid(op_type), stack)

    def _emit(self, key, tensor, output=0):
        size = (tensor.shape.num_elements() or 0) * (tensor.dtype.size or 1)
        if size < _FAST or "CPU" not in (tensor.device or "CPU"):
            array = tf.value(tensor) if "CPU" in (tensor.device or "CPU") else tensor.numpy()
            value = digest.digest_array(array)
        else:
            with tf.stop_recording():
                packed = digests.fingerprint(tensor)
            value = int(tf.value(packed).view("<u8")[0, 0])
        self._recorder.emit_one(key, value, digest.digest_shape(tensor.shape.as_list()))
        self._recorder.mark_loaded(key, value)
        if self._recorder.values is not None:
            for entry in self._recorder.values.entries_for(*self._recorder.eager.name_of(key)):
                if entry["output"] == output:
                    self._recorder.values.record_op(entry, key, tensor.numpy())


def _op_callbacks(callback, wrappers):
    """Install for this thread and all that come: TensorFlow keeps callbacks by thread. A function that undoes it."""
    tf.op_callbacks.add_op_callback(callback)
    removed = []

    def start(original, thread):
        def run():
            if not removed:
                tf.context.context().add_op_callback(callback)
            return body()

        body, thread.run = thread.run, run
        return original(thread)

    wrappers.wrap(threading.Thread, "start", start)

    def stop():
        removed.append(True)
        tf.op_callbacks.remove_op_callback(callback)

    return stop


def _place(body):
    """The user's stack; in what TensorFlow alone calls, such as a gradient, that of the call."""
    return user_frames.stack_of_caller() or (body.stack if body is not None else [])


def _who(body):
    """The CallerIdentity of this thread; the main thread, those of a strategy's replicas and TensorFlow's own have
    no name."""
    if body is not None:
        return CallerIdentity("", 0, *body.identity)
    replica = getattr(threading.current_thread(), "replica_id", None)
    if replica is None:
        return CallerIdentity(pool_tasks.thread_name(), 0, "", 0)
    return CallerIdentity("", int(replica), "", 0)


def _seeds(attrs):
    attrs = list(attrs or ())
    return {name: int(value or 0) for name, value in zip(attrs[::2], attrs[1::2]) if name in ("seed", "seed2")}
