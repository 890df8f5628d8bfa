"""The ids and definitions of graph ops' outputs."""

import re
import weakref

from .. import digest, user_frames
from . import internals as tf
from . import op_traits, pipelines
from .graphs import forwarded_tensor
from .variable_labels import captured_input, label_of_node

_SILENT = op_traits.ALIASES | op_traits.FLOWS | op_traits.SHAPES | op_traits.HANDLES | {"Const"}
_REPLICA = re.compile(r"(?:^|/)replica_(\d+)/")


class GraphOpIds(object):
    """The ids of graph ops' outputs; each op is defined once, at its first use.

    A definition describes one output in the trace file. (function, trace) identifies a graph: its name, and how many
    graphs of that name came before.
    labels: a variable_labels.VariableLabels. An op's attribute _tfdet_keys is (recorder, ids of its outputs).
    """

    def __init__(self, recorder, labels):
        self._recorder = recorder
        self._labels = labels
        self._names = {}       # {full name of a graph function: (function, trace)}
        self._incomplete = []  # (op, number, fields) of ops that were defined before all their inputs
        self._graphs = {}      # {full name of a graph function: weak reference to its graph}
        self._python = {}      # {token of a Python function that ops call: ((function, trace), stack of the call)}
        self._lines = {}       # {(name of a Python function, line that calls it eagerly): (function, trace)}

    def identify_graph(self, graph):
        """Return (function, trace number) of a graph."""
        identity = getattr(graph, "_tfdet_identity", None)
        if identity is None or identity[0] is not self._recorder:
            name = getattr(graph, "name", None) if isinstance(graph, tf.func_graph.FuncGraph) else "session"
            function = op_traits.without_uid(name or "function")
            number = self._recorder.definitions.next_trace_number(function)
            identity = graph._tfdet_identity = (self._recorder, function, number)
        return identity[1:]

    def name_function(self, name, graph):
        """Note that the function of this full name runs this graph."""
        self._names[_text(name)] = self.identify_graph(graph)
        self._graphs[_text(name)] = weakref.ref(graph)

    def _graph_of(self, name):
        """Return the graph of the function of this full name, or None."""
        return self._graphs.get(_text(name), lambda: None)()

    def on_function_copied(self, name, copy):
        """Give the copy of a function, which has the same probes, the same keys."""
        graph = self._graph_of(name)
        if graph is None or len(graph.inputs) != len(copy.inputs):
            return
        self.identify_graph(graph)
        copy._tfdet_identity = graph._tfdet_identity
        originals = {op.name: op for op in graph.get_operations()}
        originals.update((copied.op.name, source.op) for copied, source in zip(copy.inputs, graph.inputs))
        for op in copy.get_operations():
            keys = getattr(originals.get(op.name), "_tfdet_keys", None)
            if keys is not None:
                op._tfdet_keys = keys

    def called_functions(self, op):
        """Return [(function, trace), ...] of the graph functions that an op runs."""
        functions = []
        for attr in op.node_def.attr.values():
            names = [attr.func.name] if attr.func.name else [function.name for function in attr.list.func]
            functions.extend(self._names[name] for name in names if name in self._names)
        return functions

    def python_function(self, token):
        """Return ((function, trace), stack of the call) of a Python function that ops call, or None."""
        return self._python.get(_text(token))

    def python_function_called_eagerly(self, token, stack):
        """Return the same for an eager op's call, whose token is new each time.

        One line calls one function.
        """
        name = _python_name(token)
        line = (name, str(stack[:1]))
        if line not in self._lines:
            self._lines[line] = self._new_identity(name)
        return self._python.setdefault(_text(token), (self._lines[line], stack))

    def _python_called(self, op, stack):
        """Return [(function, trace)] of the Python function that a graph's op calls."""
        if op.type not in op_traits.PYTHON:
            return []
        token = _text(op.get_attr("token"))
        if token not in self._python:
            self._python[token] = self._new_identity(_python_name(token)), stack
        return [self._python[token][0]]

    def _new_identity(self, name):
        return name, self._recorder.definitions.next_trace_number(name)

    def find_function(self, name):
        return self._names.get(_text(name))

    def key_of_tensor(self, tensor):
        """Return the id of one output."""
        return self.keys_of_op(tensor.op)[tensor.value_index]

    def keys_of_op(self, op):
        """Return the ids of all outputs, or of the op itself if it writes a variable and has no output."""
        pending = [op]
        while pending:  # not recursive, because a graph may be deeper than Python's stack
            current = pending[-1]
            if self._is_defined(current):
                pending.pop()
                continue
            undefined = [input_op for input_op in _feeding(current) if not self._is_defined(input_op)]
            if undefined and not getattr(current, "_tfdet_entered", False):
                current._tfdet_entered = True  # if a cycle leads back to it, it is defined without that input
                pending.extend(undefined)
            else:
                keys = self._keys_so_far(current)
                current._tfdet_keys = (self._recorder, keys + self._define(current, len(keys)))
                pending.pop()
        while self._incomplete:  # now all ops of the cycle have ids
            current, number, fields = self._incomplete.pop()
            self._recorder.definitions.redefine(number, **dict(fields, inputs=self._ids(_inputs(current))))
        return self._keys_so_far(op)

    def _keys_so_far(self, op):
        """Return the ids that an op has so far."""
        owner, keys = getattr(op, "_tfdet_keys", (None, []))
        return keys if owner is self._recorder else []

    def _is_defined(self, op):
        # A while loop gets more outputs when its gradient is built.
        owner = getattr(op, "_tfdet_keys", (None,))[0]
        return owner is self._recorder and len(self._keys_so_far(op)) >= len(op.outputs)

    def _ids(self, tensors):
        ids = []
        for tensor in tensors:
            if tf.is_symbolic(tensor):
                ids.extend(self._keys_so_far(tensor.op)[tensor.value_index:][:1])
            elif getattr(tensor, "_tfdet_key", (None,))[0] is self._recorder:
                ids.append(tensor._tfdet_key[1])
        return ids

    def _define(self, op, first):
        """Define the outputs of an op from number `first` on, and return their ids."""
        # In the threads of a strategy AutoGraph's lines are not mapped: the line that called the function is used.
        stack = user_frames.stack_of_op(op) or user_frames.stack_of_caller()
        function, trace = self.identify_graph(op.graph)
        kind, variable = op_traits.definition_kind(op.type), None
        attrs = dict(_attributes(op), **pipelines.graph_op_traits(op, self._graph_of))
        if getattr(op, "_tfdet_in_queue_thread", False):
            attrs["prefetch"] = True
        if getattr(op, "_tfdet_loss", False):
            attrs["loss"] = True
        if getattr(op, "_tfdet_unordered", None):
            attrs["unordered"] = op._tfdet_unordered
        forward = _forward(op)
        if forward is not None:
            attrs["forward_type"] = forward.type
        inputs = self._ids(_inputs(op))
        if op.type == "Placeholder" and isinstance(op.graph, tf.func_graph.FuncGraph):
            kind = "argument"
            external = captured_input(op)
            inputs = [] if external is None else self._ids([external])
            attrs["argument_index"] = _position(op)
        if op_traits.accesses_variable(op.type):
            variable = self._labels.find_label(op.inputs[0]) if len(op.inputs) else label_of_node(op)
        elif op.type in op_traits.HANDLES:
            variable = label_of_node(op)
        elif reads_reference(op):
            kind, variable = "read", self._labels.find_label(op.inputs[0])
        fields = dict(op=op.type, node=op.name, function=function, trace=trace, device=likely_device(op),
                      file=stack[0][0] if stack else None, line=stack[0][1] if stack else 0, stack=stack,
                      forward=forward.name if forward is not None else None,
                      forward_stack=user_frames.stack_of_op(forward) if forward is not None else [],
                      inputs=inputs, variable=variable, kind=kind,
                      calls=[list(function) for function in self.called_functions(op) + self._python_called(op, stack)],
                      attrs=attrs, layer=op.name.rpartition("/")[0] or None, replica=replica_of_scope(op.name))
        keys = []
        for index, tensor in list(enumerate(op.outputs))[first:]:
            output_fields = dict(fields, output=index, dtype=tensor.dtype.base_dtype.name, shape=tf.shape_list(tensor),
                                 recorded=kind == "write" or op.type == "Const" or is_probed(op, tensor))
            keys.append(self._recorder.definitions.new_key(**output_fields))
            if kind != "argument" and not all(map(self._is_defined, _feeding(op))):
                self._incomplete.append((op, keys[-1], output_fields))
        if (kind in ("write", "call") or op.type in op_traits.PYTHON) and not keys:
            keys = [self._recorder.definitions.new_key(output=-1, recorded=kind == "write", **fields)]
        if op.type == "Const" and keys and self._recorder.level == "ops":  # one record is enough for a constant
            self._recorder.emit_one(keys[0], digest.digest_bytes(op.get_attr("value").SerializeToString()))
        return keys


def _feeding(op):
    """Return the ops whose outputs feed this one, also across the border of a function body."""
    external = captured_input(op)
    if external is not None:
        return [external.op] if tf.is_symbolic(external) else []
    return [tensor.op for tensor in _inputs(op)]


def _inputs(op):
    """Return the input tensors of an op, and those that were put into its stack, queue or iterator."""
    put_prefix = next((stored for take_prefix, stored in _TAKEN if op.type.startswith(take_prefix)), None)
    if put_prefix is None or not len(op.inputs):
        return list(op.inputs)
    handles, stored = [forwarded_tensor(op.inputs[0])], []
    for handle in handles:  # grows: into the loop, into a branch
        for consumer in handle.consumers():
            if consumer.type.startswith(put_prefix):
                stored.extend(tensor for tensor in consumer.inputs if tensor is not handle)
            elif consumer.type in op_traits.ALIASES:
                handles.extend(consumer.outputs)
    return list(op.inputs) + stored


# Prefixes of the types of ops that take a value out of a container, and of those that put values in.
_TAKEN = (("StackPop", "StackPush"), ("QueueDequeue", "QueueEnqueue"), ("IteratorGetNext", "MakeIterator"))
_GRADIENT = re.compile(r"(?:^|/)gradients(?:_\d+)?/(.+?)_grad/")


def _forward(op):
    """Return the op whose gradient this op belongs to, or None."""
    if getattr(op, "_original_op", None) is not None:
        return op._original_op
    match = _GRADIENT.search(op.name)
    if not match:
        return None
    graphs = [getattr(op.graph, "_forward_graph", None), op.graph]
    if isinstance(op.graph, tf.func_graph.FuncGraph):
        graphs += [external.graph for external, _ in tf.captures(op.graph)[:1] if tf.is_symbolic(external)]
    for graph in graphs:
        try:
            return graph.get_operation_by_name(match.group(1))
        except (AttributeError, KeyError, ValueError):  # no such graph, or no such op in it
            continue
    return None


def is_probed(op, tensor):
    """Return whether this output is recorded."""
    dtype = tensor.dtype
    if reads_reference(op):
        return True
    return not (op.type in _SILENT or dtype._is_ref_dtype or dtype in (tf.dtypes.resource, tf.dtypes.variant)
                or op_traits.writes_variable(op.type))


def likely_device(op):
    """Return the device of an op; if none is set, a GPU if there is one and the op has no host state."""
    return op.device or ("/device:GPU:0" if tf.has_gpus() and op_traits.definition_kind(op.type) == "op" else "")


def reads_reference(op):
    """Return whether an Identity op reads a reference variable: graphs have no other op for such a read."""
    return op.type == "Identity" and len(op.inputs) > 0 and op.inputs[0].dtype._is_ref_dtype


def replica_of_scope(name):
    """Return the number of the replica in whose name scope an op lies."""
    match = _REPLICA.search(name)
    return int(match.group(1)) if match else 0


def _attributes(op):
    attributes = {}
    for name in ("seed", "seed2"):
        if name in op.node_def.attr:
            attributes[name] = op.node_def.attr[name].i
    return attributes


def _position(op):
    for index, tensor in enumerate(op.graph.inputs or ()):
        if tf.is_symbolic(tensor) and tensor.op is op:
            return index
    return -1


def _python_name(token):
    """Return the program's name for the Python function of this token."""
    function = tf.script_ops._py_funcs._funcs.get(_text(token))
    function = getattr(function, "_func", function)
    return getattr(function, "__name__", type(function).__name__)


def _text(name):
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name
