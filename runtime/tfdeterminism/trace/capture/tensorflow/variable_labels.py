"""The labels of variables, by which a read finds the write before it.

A label is the variable's name, with a number if several have it; a handle is the resource tensor that ops get.
"""

import gc
import weakref

from .. import digest
from . import internals as tf
from . import op_traits


class VariableLabels(object):
    """The labels of all variables that the program creates, with the digests of freed ones.

    session_weights: knows the variables that only sessions have.
    """

    def __init__(self, recorder, session_weights, wrappers):
        self._recorder = recorder
        self._session_weights = session_weights
        self._by_handle = {}    # {id of an eager handle: label}
        self._unnamed = {}      # {id of a handle: keys of reads and writes before it had a label}
        self._foreign = []      # handles of variables that were not tracked when they were created
        self._alive = {}        # {label: weak reference to a trainable variable}
        self._shaped = {}       # {(type, shape): {label: weak reference}} of all variables
        self._inherited = {}    # {label: weak reference to a trainable variable of the parent of this fork}
        self._final = {}        # {label: digest of a freed variable}
        wrappers.wrap(tf.variables.VariableMetaclass, "__call__", self._on_created)

    def _on_created(self, original, cls, *args, **kwargs):
        variable = original(cls, *args, **kwargs)
        if cls.__name__ != "_UnreadVariable":  # what an assignment returns: the same variable again
            self._track(variable)
        return variable

    def track_all(self, variables):
        """Track variables that were created before. Those of Keras 3 hold TensorFlow's in .value."""
        for variable in variables:
            self._track(variable if isinstance(variable, tf.BaseVariable) else getattr(variable, "value", variable))

    def register_existing(self):
        """Track the variables that exist before recording begins, so that reads find them.

        It is unknown what they belong to, so that they do not count as trained.
        """
        if tf.context.context_safe() is None:  # nothing has run yet
            return
        variables = [candidate for candidate in gc.get_objects() if issubclass(type(candidate), tf.BaseVariable)]
        variables.sort(key=lambda variable: (variable.name, str(getattr(variable, "_unique_id", ""))))
        for variable in variables:
            self._track(variable, is_trained=False)

    def _track(self, variable, is_trained=True):
        handle = getattr(variable, "_handle", None)
        if self._recorder.active and isinstance(variable, tf.BaseVariable) and handle is not None \
                and tf.is_eager(handle):
            if id(handle) not in self._by_handle:
                self._assign_label(variable, handle)
            if is_trained and getattr(variable, "trainable", False):
                self._alive.setdefault(self._by_handle[id(handle)], weakref.ref(variable))

    def _assign_label(self, variable, handle):
        label = self._recorder.definitions.unique_label(variable.name.partition(":")[0])
        self._by_handle[id(handle)] = label
        self._recorder.eager.name_variable(self._unnamed.pop(id(handle), []), label)
        self._shaped.setdefault(_type_and_shape(variable), {})[label] = weakref.ref(variable)
        weakref.finalize(variable, self._on_freed, label, handle, variable.dtype).atexit = False

    def _on_freed(self, label, handle, dtype):
        self._by_handle.pop(id(handle), None)
        if self._alive.pop(label, None) is not None and self._recorder.active:
            value = self._digest(handle, dtype)
            if value is not None:
                self._final[label] = value

    def _digest(self, handle, dtype):
        """Return the digest of a variable's value now, or None if it has none."""
        value = self._value(handle, dtype)
        return None if value is None else digest.digest_array(value)

    def _value(self, handle, dtype):
        try:
            with self._recorder.unrecorded(), tf.ops.init_scope(), tf.stop_recording():
                if not tf.context.executing_eagerly():
                    return None
                value = tf.resource_variable_ops.gen_resource_variable_ops.read_variable_op(handle, dtype.base_dtype)
                return tf.value(value) if "CPU" in value.device else value.numpy()
        except Exception:  # the variable is not initialized, or its runtime is shut down
            return None

    def owner_of(self, tensor):
        """Return the label of the variable whose value this eager tensor is, or None.

        They share their memory or, if that cannot be determined, have the same bytes.
        """
        for label, reference in list(self._shaped.get(_type_and_shape(tensor), {}).items()):
            variable = reference()
            if variable is None:
                self._shaped[_type_and_shape(tensor)].pop(label, None)
            elif self._has_same_value(tensor, variable):
                return label
        return None

    def _has_same_value(self, tensor, variable):
        if tf.is_on_cpu(tensor) and tensor.shape.ndims != 0:  # NumPy copies a single number
            return tf.address(tensor) is not None and tf.address(tensor) == self._address(variable)
        with self._recorder.unrecorded():
            return self._digest(variable._handle, variable.dtype) == digest.digest_array(tensor.numpy())

    def _address(self, variable):
        try:
            with self._recorder.unrecorded(), tf.ops.init_scope(), tf.stop_recording():
                read = tf.resource_variable_ops.gen_resource_variable_ops.read_variable_op
                return tf.address(read(variable._handle, variable.dtype.base_dtype))
        except Exception:  # the variable is not initialized, or its runtime is shut down
            return None

    def trained_digests(self):
        """Return {label: digest} of the trainable variables that are alive."""
        return {label: digest.digest_array(value) for label, value in self._trainable()}

    def trained_values(self):
        """Return {label: array} of these, and of those of the session that trained last."""
        values = dict(self._trainable())
        values.update(self._session_weights.last_session_values())
        return values

    def _trainable(self):
        for label, reference in sorted(self._alive.items()):
            variable = reference()
            value = None if variable is None else self._value(variable._handle, variable.dtype)
            if value is not None:
                yield label, value

    def on_fork(self):
        """Disregard the parent's variables in a fork, unless the fork creates variables, as training does."""
        self._inherited.update(self._alive)
        self._alive, self._final = {}, {}
        self._session_weights.on_fork()

    def final_digests(self):
        """Return {label: digest} of all trainable variables; of freed ones as they were last."""
        final = dict(self._final)
        if self._alive or final:
            self._alive.update(self._inherited)
        final.update(self.trained_digests())
        final.update(self._session_weights.final_digests())
        return final

    # Which variable a handle is

    def find_label(self, handle):
        """Return the label of a handle, eager or in a graph, even inside of functions; None if unknown."""
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
        """Return the label of an eager handle; None for a variable under construction: see defer()."""
        if id(handle) not in self._by_handle and not hasattr(handle, "_tfdet_key"):
            self._foreign.append(handle)  # kept alive, so that its id is not reused
            self._by_handle[id(handle)] = self._recorder.definitions.unique_label("variable")
        return self._by_handle.get(id(handle))

    def defer(self, handle, keys):
        """Note that these keys read or write a variable that has no label yet."""
        self._unnamed.setdefault(id(handle), []).extend(keys)


def _type_and_shape(value):
    """Return the type and shape of a tensor or variable."""
    return value.dtype.base_dtype.name, tuple(value.shape.as_list()) if value.shape.ndims is not None else None


def label_of_node(op):
    """Return the label of a variable in a session's graph."""
    try:
        name = op.get_attr("shared_name")
    except ValueError:
        name = b""
    return (name.decode("utf-8", "replace") if isinstance(name, bytes) else name) or op.name


def captured_input(op):
    """Return the tensor that a placeholder of a function body was captured from, or None."""
    if op.type != "Placeholder" or not isinstance(op.graph, tf.func_graph.FuncGraph):
        return None
    for external, internal in tf.captures(op.graph):
        if internal is op.outputs[0] or (tf.is_symbolic(internal) and internal.op is op):
            return external
    return None
