"""Names for variables, by which a read finds the write before it."""

import gc
import weakref

from .. import digest
from . import internals as tf
from . import op_traits


class VariableLabels(object):
    """Follows every variable that the program creates, and digests it when it goes.

    session_weights: what is known of variables that only sessions have."""

    def __init__(self, recorder, session_weights, wrappers):
        self._recorder = recorder
        self._session_weights = session_weights
        self._by_handle = {}    # id of an eager handle: label
        self._unnamed = {}      # id of a handle: keys of what was done to it before it had a name
        self._foreign = []      # handles that were there before us
        self._alive = {}        # label: weak reference to a trainable variable
        self._shaped = {}       # (type, shape): {label: weak reference}, of all variables
        self._inherited = {}    # label: weak reference to a trainable variable of the process that forked us
        self._final = {}        # label: digest of a variable that is gone
        wrappers.wrap(tf.variables.VariableMetaclass, "__call__", self._made)

    def _made(self, original, cls, *args, **kwargs):
        variable = original(cls, *args, **kwargs)
        if cls.__name__ != "_UnreadVariable":  # what an assignment returns: the same variable again
            self._follow_one(variable)
        return variable

    def track_all(self, variables):
        """Variables that were there before us; those of Keras 3 hold TensorFlow's in .value."""
        for one in variables:
            self._follow_one(one if isinstance(one, tf.BaseVariable) else getattr(one, "value", one))

    def register_existing(self):
        """Variables that are there before recording begins: what is read of them is no value from Python. Whose they
        are is not known, and so they do not count among what is trained."""
        if tf.context.context_safe() is None:  # nothing has run yet
            return
        living = [one for one in gc.get_objects() if issubclass(type(one), tf.BaseVariable)]
        for one in sorted(living, key=lambda one: (one.name, str(getattr(one, "_unique_id", "")))):
            self._follow_one(one, counted=False)

    def _follow_one(self, variable, counted=True):
        handle = getattr(variable, "_handle", None)
        if self._recorder.active and isinstance(variable, tf.BaseVariable) and handle is not None \
                and tf.is_eager(handle):
            if id(handle) not in self._by_handle:
                self._follow(variable, handle)
            if counted and getattr(variable, "trainable", False):
                self._alive.setdefault(self._by_handle[id(handle)], weakref.ref(variable))

    def _follow(self, variable, handle):
        label = self._recorder.definitions.unique_label(variable.name.partition(":")[0])
        self._by_handle[id(handle)] = label
        self._recorder.eager.name_variable(self._unnamed.pop(id(handle), []), label)
        self._shaped.setdefault(_form(variable), {})[label] = weakref.ref(variable)
        weakref.finalize(variable, self._gone, label, handle, variable.dtype).atexit = False

    def _gone(self, label, handle, dtype):
        self._by_handle.pop(id(handle), None)
        if self._alive.pop(label, None) is not None and self._recorder.active:
            value = self._digest(handle, dtype)
            if value is not None:
                self._final[label] = value

    def _digest(self, handle, dtype):
        """The digest of a variable's value now, or None if it has none."""
        value = self._value(handle, dtype)
        return None if value is None else digest.digest_array(value)

    def _value(self, handle, dtype):
        try:
            with self._recorder.unrecorded(), tf.ops.init_scope(), tf.stop_recording():
                if not tf.context.executing_eagerly():
                    return None
                value = tf.resource_variable_ops.gen_resource_variable_ops.read_variable_op(handle, dtype.base_dtype)
                return tf.value(value) if "CPU" in value.device else value.numpy()
        except Exception:  # not initialised, or its runtime is gone
            return None

    def owner_of(self, tensor):
        """The label of the variable whose value this eager tensor is: they share their memory, or, where that cannot be
        seen, the bytes are the same. None for any other."""
        for label, reference in list(self._shaped.get(_form(tensor), {}).items()):
            variable = reference()
            if variable is None:
                self._shaped[_form(tensor)].pop(label, None)
            elif self._shares(tensor, variable):
                return label
        return None

    def _shares(self, tensor, variable):
        if tf.is_on_cpu(tensor) and tensor.shape.ndims != 0:  # NumPy copies a single number
            return tf.address(tensor) is not None and tf.address(tensor) == self._address(variable)
        with self._recorder.unrecorded():
            return self._digest(variable._handle, variable.dtype) == digest.digest_array(tensor.numpy())

    def _address(self, variable):
        try:
            with self._recorder.unrecorded(), tf.ops.init_scope(), tf.stop_recording():
                read = tf.resource_variable_ops.gen_resource_variable_ops.read_variable_op
                return tf.address(read(variable._handle, variable.dtype.base_dtype))
        except Exception:  # not initialised, or its runtime is gone
            return None

    def trained_digests(self):
        """{label: digest} of the trainable variables that are alive."""
        return {label: digest.digest_array(value) for label, value in self._trainable()}

    def trained_values(self):
        """{label: array} of them, and of those of the session that trained last."""
        found = dict(self._trainable())
        found.update(self._session_weights.last_session_values())
        return found

    def _trainable(self):
        for label, reference in sorted(self._alive.items()):
            variable = reference()
            value = None if variable is None else self._value(variable._handle, variable.dtype)
            if value is not None:
                yield label, value

    def on_fork(self):
        """In a fork: what is inherited is the parent's, unless variables are made here, as training does."""
        self._inherited.update(self._alive)
        self._alive, self._final = {}, {}
        self._session_weights.on_fork()

    def final_digests(self):
        """{label: digest} of all trainable variables, those that are gone as they were last."""
        found = dict(self._final)
        if self._alive or found:
            self._alive.update(self._inherited)
        found.update(self.trained_digests())
        found.update(self._session_weights.final_digests())
        return found

    # Which variable a handle is

    def find_label(self, handle):
        """The label of a handle: an eager tensor, or a graph's, followed out of function bodies. None if unknown."""
        while tf.is_symbolic(handle):
            op = handle.op
            if op.type in op_traits.ALIASES and len(op.inputs):
                handle = op.inputs[0]
            elif op.type in op_traits.HANDLES:
                return label_of_node(op)
            else:
                handle = captured_input(op)
        return None if handle is None else self.find_eager_label(handle)

    def find_eager_label(self, handle):
        """The label of an eager handle; None for a variable that is just being made: see defer()."""
        if id(handle) not in self._by_handle and not hasattr(handle, "_tfdet_key"):
            self._foreign.append(handle)  # kept, so that its id stays its own
            self._by_handle[id(handle)] = self._recorder.definitions.unique_label("variable")
        return self._by_handle.get(id(handle))

    def defer(self, handle, keys):
        """These keys read or write a variable that has no name yet."""
        self._unnamed.setdefault(id(handle), []).extend(keys)


def _form(value):
    """Type and shape of a tensor or variable."""
    return value.dtype.base_dtype.name, tuple(value.shape.as_list()) if value.shape.ndims is not None else None


def label_of_node(op):
    """The label of a variable in a session's graph."""
    try:
        name = op.get_attr("shared_name")
    except ValueError:
        name = b""
    return (name.decode("utf-8", "replace") if isinstance(name, bytes) else name) or op.name


def captured_input(op):
    """What a placeholder of a function body was captured from, or None."""
    if op.type != "Placeholder" or not isinstance(op.graph, tf.func_graph.FuncGraph):
        return None
    for external, internal in tf.captures(op.graph):
        if internal is op.outputs[0] or (tf.is_symbolic(internal) and internal.op is op):
            return external
    return None
