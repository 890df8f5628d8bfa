"""What a graph op's outputs are called, and what feeds them."""

import re
import weakref

from .. import digest, user_frames
from . import internals as tf
from . import op_traits, pipelines
from .graphs import forwarded_tensor
from .variable_labels import captured_input, label_of_node

_SILENT = op_traits.ALIASES | op_traits.FLOWS | op_traits.SHAPES | op_traits.HANDLES | {"Const"}
_REPLICA = re.compile(r"(?:^|/)replica_(\d+)/")


class GraphKeys(object):
    """Gives the outputs of graph ops their ids; each op is defined once, when it is first asked for."""

    def __init__(self, recorder, labels):
        self._recorder = recorder
        self._labels = labels
        self._names = {}      # full name of a graph function: (function, trace)
        self._open = []       # (op, number, fields): defined while not all that feeds it was
        self._graphs = {}     # full name of a graph function: weak reference to its graph
        self._python = {}     # token of a Python function that ops call: ((function, trace), stack of the call)
        self._lines = {}      # (its name, line that calls it eagerly): (function, trace)

    def identify_graph(self, graph):
        """(function, trace number) of a graph."""
        known = getattr(graph, "_tfdet_identity", None)
        if known is None or known[0] is not self._recorder:
            name = getattr(graph, "name", None) if isinstance(graph, tf.func_graph.FuncGraph) else "session"
            function = op_traits.without_uid(name or "function")
            number = self._recorder.definitions.next_trace_number(function)
            known = graph._tfdet_identity = (self._recorder, function, number)
        return known[1:]

    def name_function(self, name, graph):
        """A function of this full name runs this graph."""
        self._names[_text(name)] = self.identify_graph(graph)
        self._graphs[_text(name)] = weakref.ref(graph)

    def _graph_of(self, name):
        """The graph of the function of this full name, or None."""
        return self._graphs.get(_text(name), lambda: None)()

    def on_function_copied(self, name, copy):
        """`copy` was made from the function of this full name, probes and all: its records are that one's."""
        graph = self._graph_of(name)
        if graph is None or len(graph.inputs) != len(copy.inputs):
            return
        self.identify_graph(graph)
        copy._tfdet_identity = graph._tfdet_identity
        twins = {op.name: op for op in graph.get_operations()}
        twins.update((mine.op.name, its.op) for mine, its in zip(copy.inputs, graph.inputs))
        for op in copy.get_operations():
            known = getattr(twins.get(op.name), "_tfdet_keys", None)
            if known is not None:
                op._tfdet_keys = known

    def called_functions(self, op):
        """[(function, trace), ...] of the graph functions that an op runs."""
        found = []
        for attr in op.node_def.attr.values():
            names = [attr.func.name] if attr.func.name else [one.name for one in attr.list.func]
            found.extend(self._names[name] for name in names if name in self._names)
        return found

    def python_function(self, token):
        """((function, trace), stack of what calls it) of a Python function that ops call, or None."""
        return self._python.get(_text(token))

    def python_function_called_eagerly(self, token, stack):
        """The same of one that an eager op calls, which has a new token each time: one line calls one function."""
        name = _name_of_python(token)
        line = (name, str(stack[:1]))
        if line not in self._lines:
            self._lines[line] = self._new_identity(name)
        return self._python.setdefault(_text(token), (self._lines[line], stack))

    def _python_called(self, op, stack):
        """[(function, trace)] of the Python function that a graph's op calls."""
        if op.type not in op_traits.PYTHON:
            return []
        token = _text(op.get_attr("token"))
        if token not in self._python:
            self._python[token] = self._new_identity(_name_of_python(token)), stack
        return [self._python[token][0]]

    def _new_identity(self, name):
        return name, self._recorder.definitions.next_trace_number(name)

    def find_function(self, name):
        return self._names.get(_text(name))

    def key_of_tensor(self, tensor):
        """The id of one output."""
        return self.keys_of_op(tensor.op)[tensor.value_index]

    def keys_of_op(self, op):
        """The ids of all outputs; of the op itself where it writes a variable and puts out nothing."""
        waiting = [op]
        while waiting:  # by hand: a graph is deeper than Python's stack
            last = waiting[-1]
            if self._known(last):
                waiting.pop()
                continue
            missing = [one for one in _feeding(last) if not self._known(one)]
            if missing and not getattr(last, "_tfdet_entered", False):
                last._tfdet_entered = True  # a loop comes back to it: then it is taken without that input
                waiting.extend(missing)
            else:
                last._tfdet_keys = (self._recorder, self._made(last) + self._define(last, len(self._made(last))))
                waiting.pop()
        while self._open:  # now the loop is closed
            last, number, fields = self._open.pop()
            self._recorder.definitions.redefine(number, **dict(fields, inputs=self._ids(_inputs(last))))
        return self._made(op)

    def _made(self, op):
        """The ids that an op has so far."""
        owner, made = getattr(op, "_tfdet_keys", (None, []))
        return made if owner is self._recorder else []

    def _known(self, op):
        # A while loop gets more outputs when its gradient is built.
        return getattr(op, "_tfdet_keys", (None,))[0] is self._recorder and len(self._made(op)) >= len(op.outputs)

    def _ids(self, tensors):
        found = []
        for tensor in tensors:
            if tf.is_symbolic(tensor):
                found.extend(self._made(tensor.op)[tensor.value_index:][:1])
            elif getattr(tensor, "_tfdet_key", (None,))[0] is self._recorder:
                found.append(tensor._tfdet_key[1])
        return found

    def _define(self, op, first):
        """New ids for the outputs of an op from number `first` on."""
        # In the threads of a strategy AutoGraph's lines lead nowhere: then the line that called the function.
        stack = user_frames.stack_of_op(op) or user_frames.stack_of_caller()
        function, trace = self.identify_graph(op.graph)
        kind, variable = op_traits.definition_kind(op.type), None
        attrs = dict(_attributes(op), **pipelines.graph_op_traits(op, self._graph_of))
        if getattr(op, "_tfdet_ahead", False):
            attrs["prefetch"] = True
        if getattr(op, "_tfdet_loss", False):
            attrs["loss"] = True
        if getattr(op, "_tfdet_open", None):
            attrs["unordered"] = op._tfdet_open
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
                      calls=[list(one) for one in self.called_functions(op) + self._python_called(op, stack)],
                      attrs=attrs, layer=op.name.rpartition("/")[0] or None, replica=replica_of_scope(op.name))
        made = []
        for index, tensor in list(enumerate(op.outputs))[first:]:
            one = dict(fields, output=index, dtype=tensor.dtype.base_dtype.name, shape=tf.shape_list(tensor),
                       recorded=kind == "write" or op.type == "Const" or is_probed(op, tensor))
            made.append(self._recorder.definitions.new_key(**one))
            if kind != "argument" and not all(map(self._known, _feeding(op))):
                self._open.append((op, made[-1], one))
        if (kind in ("write", "call") or op.type in op_traits.PYTHON) and not made:
            made = [self._recorder.definitions.new_key(output=-1, recorded=kind == "write", **fields)]
        if op.type == "Const" and made and self._recorder.level == "ops":  # one record says all
            self._recorder.emit_one(made[0], digest.digest_bytes(op.get_attr("value").SerializeToString()))
        return made


def _feeding(op):
    """The ops whose outputs feed this one, also across the border of a function body."""
    external = captured_input(op)
    if external is not None:
        return [external.op] if tf.is_symbolic(external) else []
    return [tensor.op for tensor in _inputs(op)]


def _inputs(op):
    """The tensors that feed an op; what is taken from a stack, a queue or an iterator was put there."""
    puts = next((put for take, put in _TAKEN if op.type.startswith(take)), None)
    if puts is None or not len(op.inputs):
        return list(op.inputs)
    handles, put = [forwarded_tensor(op.inputs[0])], []
    for handle in handles:  # grows: into the loop, into a branch
        for one in handle.consumers():
            if one.type.startswith(puts):
                put.extend(other for other in one.inputs if other is not handle)
            elif one.type in op_traits.ALIASES:
                handles.extend(one.outputs)
    return list(op.inputs) + put


# What begins to name the ops that take out of a holder, and those that put in.
_TAKEN = (("StackPop", "StackPush"), ("QueueDequeue", "QueueEnqueue"), ("IteratorGetNext", "MakeIterator"))
_GRADIENT = re.compile(r"(?:^|/)gradients(?:_\d+)?/(.+?)_grad/")


def _forward(op):
    """The op whose gradient this op belongs to, or None."""
    if getattr(op, "_original_op", None) is not None:
        return op._original_op
    named = _GRADIENT.search(op.name)
    if not named:
        return None
    graphs = [getattr(op.graph, "_forward_graph", None), op.graph]
    if isinstance(op.graph, tf.func_graph.FuncGraph):
        graphs += [external.graph for external, _ in tf.captures(op.graph)[:1] if tf.is_symbolic(external)]
    for graph in graphs:
        try:
            return graph.get_operation_by_name(named.group(1))
        except (AttributeError, KeyError, ValueError):  # no such graph, or no such op in it
            continue
    return None


def is_probed(op, tensor):
    """Will there be records of this output?"""
    dtype = tensor.dtype
    if reads_reference(op):
        return True
    return not (op.type in _SILENT or dtype._is_ref_dtype or dtype in (tf.dtypes.resource, tf.dtypes.variant)
                or op_traits.writes_variable(op.type))


def likely_device(op):
    """Where an op is placed; where the program does not say it: on a GPU, if there is one and it is no state of the
    host's."""
    return op.device or ("/device:GPU:0" if tf.use_sum() and op_traits.definition_kind(op.type) == "op" else "")


def reads_reference(op):
    """Is it the read of a reference variable, which in a graph is no op of its own?"""
    return op.type == "Identity" and len(op.inputs) > 0 and op.inputs[0].dtype._is_ref_dtype


def replica_of_scope(name):
    """The number of the replica in whose name scope an op lies."""
    found = _REPLICA.search(name)
    return int(found.group(1)) if found else 0


def _attributes(op):
    found = {}
    for name in ("seed", "seed2"):
        if name in op.node_def.attr:
            found[name] = op.node_def.attr[name].i
    return found


def _position(op):
    for index, tensor in enumerate(op.graph.inputs or ()):
        if tf.is_symbolic(tensor) and tensor.op is op:
            return index
    return -1


def _name_of_python(token):
    """What the program calls the Python function of this token."""
    function = tf.script_ops._py_funcs._funcs.get(_text(token))
    function = getattr(function, "_func", function)
    return getattr(function, "__name__", type(function).__name__)


def _text(name):
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name
