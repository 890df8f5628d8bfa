"""The probes for eager ops: op_callbacks from TF 2.1 on, post-execution callbacks before."""

import contextlib
import threading

from .. import digest, pool_tasks, user_frames
from ..eager_keys import CallerIdentity
from . import digests, op_traits, pipelines
from . import internals as tf

_FAST = 1 << 16  # bytes; above, TensorFlow's Fingerprint pays for its call
_SKIPPED = (tf.dtypes.resource, tf.dtypes.variant)
_NO_VALUE = tuple(dtype.name for dtype in _SKIPPED)


class EagerRecorder(object):
    """The recorder of eager ops' outputs, and of the values from Python that they use.

    keys: a graph_keys.GraphOpIds; labels: a variable_labels.VariableLabels; capture: a TensorFlowInputCapture or None;
    gradients: a gradients.Gradients. A `python_call` is a python_calls.PythonCall, the call of a Python
    function by a graph, or None.
    A key is the id of an op's output; recorder.eager.key() returns that of an op's type, the user's line and a count,
    and recorder.emit_one(key, digest, shape) writes one record. recorder.steps.is_before_window(n): whether
    the steps to be recorded begin later, within n steps.
    recorder.first_own_id: the parent of a fork defined smaller ids.
    recorder.values: the ValueRecorder of outputs whose whole values are wanted, or None; an entry is one such output.
    recorder.local, by thread: busy: whether its ops are not recorded; forward: (node, stack) of the op whose gradient
    it computes; python_call.
    Attributes that a tensor gets: _tfdet_key: (recorder, id of the output's definition); _tfdet_given: the stack of the
    line that converted a Python value to it; _tfdet_made: (op, stack) of what made it before recording began.
    """

    def __init__(self, recorder, keys, labels, capture, gradients, wrappers):
        self._recorder = recorder
        self._keys = keys
        self._labels = labels
        self._capture, self._gradients = capture, gradients
        self._stop = None
        wrappers.wrap(tf.constant_op, "convert_to_eager_tensor", self._on_convert_to_tensor)
        if tf.op_callbacks is not None:
            self._stop = _install_op_callbacks(self._callback, wrappers)
        else:
            wrappers.set(tf.execute, "execute", tf.execute.execute_with_callbacks)
            if tf.context.context_safe() is not None:
                tf.context.context().add_post_execution_callback(self._post_execution)
            else:  # only the program may create the context, which decides whether execution is eager
                wrappers.wrap(tf.context.Context, "__init__", self._on_context_created)

    def close(self):
        context = tf.context.context_safe()
        if self._stop is not None:
            self._stop()
        elif context is not None and self._post_execution in context.post_execution_callbacks:
            context.post_execution_callbacks.remove(self._post_execution)

    @contextlib.contextmanager
    def install_in_thread(self):
        """Install the callback in a thread that TensorFlow started, which has none."""
        if tf.op_callbacks is None or self._callback in tf.context.context().op_callbacks:
            yield
            return
        tf.context.context().add_op_callback(self._callback)
        try:
            yield
        finally:
            tf.context.context().remove_op_callback(self._callback)

    def record_arguments(self, python_call, values):
        """Record the arguments of a Python function that a graph calls."""
        with self._recorder.unrecorded():
            for index, value in enumerate(values if self._recorder.is_recording_step() else ()):
                if value.dtype.name not in _NO_VALUE:
                    self._record_argument(python_call, index, value)

    def _record_argument(self, python_call, index, value):
        key = self._recorder.eager.key("_Arg", python_call.stack, index, _caller_identity(python_call), [], 0,
                                       kind="argument", attrs={"argument_index": index}, dtype=value.dtype.name)
        python_call.add_input(key)
        if tf.is_eager(value):
            value._tfdet_key = (self._recorder, key)
            self._emit(key, value)
        else:
            self._recorder.emit_one(key, digest.digest_array(value), digest.digest_shape(value.shape))

    def _on_convert_to_tensor(self, original, value, *args, **kwargs):
        """Note the line that converted a Python value to a tensor; an op that uses it will record it."""
        tensor, recorder = original(value, *args, **kwargs), self._recorder
        is_recorded = recorder.is_recording_step() or recorder.steps.is_before_window(1)
        if recorder.level == "ops" and is_recorded and tf.is_eager(tensor) \
                and not getattr(recorder.local, "busy", False) and not hasattr(tensor, "_tfdet_given"):
            tensor._tfdet_given = user_frames.stack_of_caller()
        return tensor

    def _on_context_created(self, original, context, *args, **kwargs):
        original(context, *args, **kwargs)
        context.add_post_execution_callback(self._post_execution)

    def _post_execution(self, op_type, inputs, attrs, outputs, name):
        self._record_op(op_type, inputs, attrs, outputs)

    def _callback(self, op_type, inputs, attrs, outputs, op_name=None, graph=None):
        if graph is None:
            self._record_op(op_type, inputs, attrs, outputs)
        return None  # no output is ever replaced

    def _record_op(self, op_type, inputs, attrs, outputs):
        local = self._recorder.local
        if not self._recorder.active or getattr(local, "busy", False):
            return
        local.busy = True
        try:
            name = op_type.decode("utf-8") if isinstance(op_type, bytes) else op_type
            function = self._keys.find_function(name)
            if self._recorder.level == "ops" and self._recorder.is_recording_step():
                self._observe(name, function, list(inputs or ()), attrs, outputs)
            elif self._recorder.level == "ops" and self._recorder.steps.is_before_window():
                self._remember(name, inputs or (), outputs)
            self._recorder.seen_ops = True
            if function is not None:
                self._recorder.steps.on_call_end()
        finally:
            local.busy = False

    def _observe(self, op_type, function, inputs, attrs, outputs):
        python_call = getattr(self._recorder.local, "python_call", None)
        stack, caller = _place(python_call), _caller_identity(python_call)
        kind = "call" if function else op_traits.definition_kind(op_type)
        short_type = op_traits.without_uid(op_type) if function else op_type
        occurrence = self._count_occurrence(python_call, caller, short_type, stack)
        variable = self._labels.find_eager_label(inputs[0]) if inputs and op_traits.accesses_variable(op_type) else None
        written_variable = variable if kind == "write" else None
        input_keys = [self._input_key(tensor, stack, caller, python_call, written_variable) for tensor in inputs]
        input_keys = [key for key in input_keys if key is not None]
        forward, forward_stack = getattr(self._recorder.local, "forward", (None, []))
        fields = dict(kind=kind, calls=self._called_functions(function, op_type, attrs), forward=forward,
                      forward_stack=forward_stack, attrs=_seeds(attrs) if kind == "random"
                      else pipelines.eager_op_traits(op_type, attrs, inputs),
                      variable=variable)
        keys = []
        for index, tensor in enumerate(outputs if isinstance(outputs, (list, tuple)) else ()):
            if not tf.is_eager(tensor):
                continue
            # ALIASES forward their input unchanged, SHAPES compute from shapes alone: no digest of these is needed.
            probed = not (tensor.dtype in _SKIPPED or op_type in op_traits.ALIASES or op_type in op_traits.SHAPES)
            key = self._recorder.eager.key(short_type, stack, index, caller, input_keys, occurrence,
                                           dtype=tensor.dtype.name, shape=None, device=tensor.device or "",
                                           recorded=probed, **fields)
            tensor._tfdet_key = (self._recorder, key)
            keys.append(key)
            if probed:
                self._emit(key, tensor, index)
        if (kind == "write" or fields["calls"]) and not keys:  # a call without results still passes values in
            keys.append(self._recorder.eager.key(short_type, stack, -1, caller, input_keys, occurrence,
                                                 recorded=kind == "write", **fields))
            if kind == "write":
                self._recorder.emit_one(keys[0], 0)
        if op_traits.accesses_variable(op_type) and inputs and variable is None:
            self._labels.defer(inputs[0], keys)  # the variable has no label yet
        if op_type == "MakeIterator" and len(input_keys) == 2:  # it has no output; the iterator depends on the dataset
            self._recorder.eager.add_inputs(input_keys[1], input_keys[0])
        if keys:
            self._gradients.on_op_run(attrs, keys[0])  # a gradient may copy these attributes, and is named by them
        if keys and self._capture is not None and not function:
            self._capture_inputs(keys, op_type, inputs, attrs, outputs)
        if python_call is not None:
            python_call.add_outputs(keys)

    def _called_functions(self, function, op_type, attrs):
        if op_type in op_traits.PYTHON:
            attrs = list(attrs or ())
            python_function = self._keys.python_function(dict(zip(attrs[::2], attrs[1::2])).get("token", ""))
            return [list(python_function[0])] if python_function else []
        return [list(function)] if function else []

    def _count_occurrence(self, python_call, caller, source, stack):
        counter = self._recorder.eager if python_call is None else python_call
        return counter.next_occurrence(caller, source, tuple(stack[0][:2]) if stack else ())

    def _capture_inputs(self, keys, op_type, inputs, attrs, outputs):
        name = self._recorder.eager.name_of(keys[0])
        if self._capture.is_wanted(*name):
            values = [None if tensor.dtype in _SKIPPED else tensor.numpy() for tensor in inputs]
            self._capture.capture_eager(keys[0], name, op_type, inputs, attrs, list(outputs or ())[:len(keys)], values)

    def _input_key(self, tensor, stack, caller, python_call, written_variable):
        """Return the key of an op's input, which is recorded now if no recorded op made it.

        written_variable: the variable that the op has written, or None.
        """
        provenance = getattr(tensor, "_tfdet_key", None)
        if provenance is not None and provenance[0] is self._recorder and provenance[1] >= self._recorder.first_own_id:
            return provenance[1]
        if not tf.is_eager(tensor) or tensor.dtype in _SKIPPED:
            return None
        source, stack, fields = self._origin(tensor, stack, written_variable)
        occurrence = self._count_occurrence(python_call, caller, source, stack)
        possible_inputs = python_call.inputs_so_far() if python_call is not None and source == "Python" else []
        key = self._recorder.eager.key(source, stack, 0, caller, possible_inputs, occurrence, dtype=tensor.dtype.name,
                                       device=tensor.device or "", **fields)
        tensor._tfdet_key = (self._recorder, key)
        self._emit(key, tensor)
        return key

    def _origin(self, tensor, stack, written_variable):
        """Return (source, stack, fields) of a value that no recorded op made.

        A value that was written shares the memory of the variable that it was written into, but came from elsewhere.
        """
        variable = self._labels.owner_of(tensor)
        if variable is not None and variable != written_variable:  # the fast path reads variables without a callback
            return "ReadVariableOp", stack, {"kind": "read", "variable": variable}
        origin = getattr(tensor, "_tfdet_made", None)
        if origin is None and hasattr(tensor, "_tfdet_key") and tensor._tfdet_key[0] is self._recorder:
            node, origin_stack = self._recorder.eager.describe(tensor._tfdet_key[1])  # before this process was forked
            origin = node.partition("@")[0], origin_stack
        if origin is not None and origin[0] != "Python":
            return origin[0], origin[1], {"kind": "op", "attrs": {"preexisting": True}}
        stack = getattr(tensor, "_tfdet_given", None) or (origin[1] if origin is not None else stack)
        return "Python", stack, {"kind": "feed", "attrs": {"created_by": "keras"} if user_frames.in_keras() else {}}

    def _remember(self, op_type, inputs, outputs):
        """Note which op made these outputs before recording began, and which line first used Python values."""
        stack = user_frames.stack_of_caller()
        if self._recorder.steps.is_before_window(1):
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
        self._recorder.mark_loaded(key, value)  # if it equals an array that was read from a file
        if self._recorder.values is not None:
            for entry in self._recorder.values.entries_for(*self._recorder.eager.name_of(key)):
                if entry["output"] == output:
                    self._recorder.values.record_op(entry, key, tensor.numpy())


def _install_op_callbacks(callback, wrappers):
    """Install the callback in this and all later threads, and return the function that removes it.

    TensorFlow keeps callbacks by thread.
    """
    tf.op_callbacks.add_op_callback(callback)
    removals = []

    def start(original, thread):
        def run():
            if not removals:
                tf.context.context().add_op_callback(callback)
            return body()

        body, thread.run = thread.run, run
        return original(thread)

    wrappers.wrap(threading.Thread, "start", start)

    def stop():
        removals.append(True)
        tf.op_callbacks.remove_op_callback(callback)

    return stop


def _place(python_call):
    """Return the user's stack. In a function that TensorFlow calls, such as a gradient: the stack of the call."""
    return user_frames.stack_of_caller() or (python_call.stack if python_call is not None else [])


def _caller_identity(python_call):
    """Return the CallerIdentity of this thread.

    The main thread, those of a strategy's replicas, and TensorFlow's own have no name.
    """
    if python_call is not None:
        return CallerIdentity("", 0, *python_call.identity)
    replica = getattr(threading.current_thread(), "replica_id", None)
    if replica is None:
        return CallerIdentity(pool_tasks.thread_name(), 0, "", 0)
    return CallerIdentity("", int(replica), "", 0)


def _seeds(attrs):
    attrs = list(attrs or ())
    return {name: int(value or 0) for name, value in zip(attrs[::2], attrs[1::2]) if name in ("seed", "seed2")}
