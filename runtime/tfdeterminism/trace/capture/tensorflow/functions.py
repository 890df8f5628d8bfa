"""Graph functions: tf.function, Keras steps, gradients, bodies of while, cond and map_fn.

When Python has built a function's graph, digests of the outputs that will be computed anyway are
added, packed into one tensor, and handed over once per call: two cheap nodes an output instead of
a call into Python.
"""

import threading

from . import in_place, op_traits, unordered_ops
from . import internals as tf
from .graph_keys import replica_of_scope
from .graphs import ProbeScope, ancestors
from .pack import DigestPack, call_python_with, capture_inputs
from .value_probes import ValueProbes

# Rewritten or run at will by TensorFlow: input pipelines, vectorised loops, exports.
_LEFT_ALONE = (("tensorflow.python.data.ops.structured_function", "StructuredFunctionWrapper", "__init__"),
               ("tensorflow.python.data.ops.dataset_ops", "StructuredFunctionWrapper", "__init__"),
               ("tensorflow.python.ops.parallel_for.control_flow_ops", None, "pfor"),
               ("tensorflow.python.saved_model.save", None, "save"))


class FunctionInstrumenter(object):
    """Instruments every graph function that is traced while it is installed."""

    def __init__(self, recorder, keys, capture, wrappers):
        self._capture = capture
        self._recorder = recorder
        self._keys = keys
        self._local = threading.local()
        self._kept = []             # TensorFlow itself keeps only weak references to Python functions
        self._taps = ValueProbes(recorder, keys, self._kept)
        self._with_sink = set()     # identities of functions that hand over
        self._ending = set()        # identities of functions that hold a training step
        wrappers.wrap(tf.func_graph, "func_graph_from_py_func", self._build)
        self._drawing = set()       # identities of functions that hold an op with a state
        wrappers.wrap(tf.while_v2, "while_loop", self._loop)
        self._watch_names(wrappers)
        wrappers.wrap(tf.function_def_to_graph, "function_def_to_graph", self._copied)
        concrete = getattr(tf.optional("tensorflow.python.eager.function"), "ConcreteFunction", None)
        if tf.VERSION < (2, 4) and concrete is not None:
            wrappers.wrap(concrete, "__init__", self._made_of_graph)
        for module, owner, name in _LEFT_ALONE:
            holder = tf.optional(module)
            holder = getattr(holder, owner, None) if owner else holder
            if holder is not None and hasattr(holder, name):
                wrappers.wrap(holder, name, self._leave_alone)

    def _watch_names(self, wrappers):
        atomic = tf.optional("tensorflow.python.eager.polymorphic_function.atomic_function")
        if hasattr(atomic, "from_func_graph"):
            wrappers.wrap(atomic, "from_func_graph", self._named)
            return
        for module in ("tensorflow.python.eager.polymorphic_function.monomorphic_function",
                       "tensorflow.python.eager.function"):
            old = getattr(tf.optional(module), "_EagerDefinedFunction", None)
            if old is not None:
                wrappers.wrap(old, "__init__", self._named_old)
                return

    def _named(self, original, name, graph, *args, **kwargs):
        self._keys.name_function(name, graph)
        return original(name, graph, *args, **kwargs)

    def _named_old(self, original, made, name, graph, *args, **kwargs):
        self._keys.name_function(name, graph)
        return original(made, name, graph, *args, **kwargs)

    def _copied(self, original, fdef, *args, **kwargs):
        """Gradients of cond and while work on a copy of the branch or body, and have that run instead."""
        copy = original(fdef, *args, **kwargs)
        self._keys.on_function_copied(fdef.signature.name, copy)
        return copy

    def _made_of_graph(self, original, function, graph, *args, **kwargs):
        """Keras up to 2.3 copies ops into a graph by itself."""
        if self._recorder.active and not getattr(self._local, "left_alone", False) \
                and not hasattr(graph, "_tfdet_extras"):
            graph.control_outputs.extend(self._instrument(graph, graph.outputs))
        return original(function, graph, *args, **kwargs)

    def _leave_alone(self, original, *args, **kwargs):
        before, self._local.left_alone = getattr(self._local, "left_alone", False), True
        try:
            return original(*args, **kwargs)
        finally:
            self._local.left_alone = before

    def _build(self, original, name, python_func, *args, **kwargs):
        if not self._recorder.active or getattr(self._local, "left_alone", False):
            return original(name, python_func, *args, **kwargs)
        sinks = []

        def build(*inner_args, **inner_kwargs):
            outputs = build.__wrapped__(*inner_args, **inner_kwargs)  # type: ignore[attr-defined]  # make_decorator's
            graph = tf.ops.get_default_graph()
            if isinstance(graph, tf.func_graph.FuncGraph) and not self._is_parallel_loop(graph):
                sinks.extend(self._instrument(graph, outputs))
                if sinks and not kwargs.get("add_control_dependencies", True):
                    outputs = _after(sinks, graph, outputs)
            return outputs

        graph = original(name, tf.tf_decorator.make_decorator(python_func, build), *args, **kwargs)
        if self._is_parallel_loop(graph):  # TensorFlow orders the turns of a body in which it sees a hand-over
            sinks = unordered_ops.add_control_inputs(self._instrument(graph, graph.outputs), graph.outputs)
        graph.control_outputs.extend(one for one in sinks if one not in graph.control_outputs)
        return graph

    def _is_parallel_loop(self, graph):
        """Is it the body of a loop whose turns shall run as they do without us?"""
        return self._recorder.level == "unordered" and is_loop(graph)

    def _loop(self, original, *args, **kwargs):
        """At ops its iterations do not overlap: its records come in order. At open they do, and the turn is told."""
        before = getattr(self._local, "parallel", 1)
        self._local.parallel = kwargs.get("parallel_iterations") or 1
        if self._recorder.level == "ops":
            kwargs["parallel_iterations"] = 1
        try:
            return original(*args, **kwargs)
        finally:
            self._local.parallel = before

    def _mark_unordered(self, graph, ops, outputs):
        """Say of what a parallel loop shares that its order is open."""
        if type(graph).__name__ == "WhileBodyFuncGraph" and getattr(self._local, "parallel", 1) > 1:
            carried = unordered_ops.loop_carried_ops(graph.inputs, _tensors(outputs))
            unordered_ops.mark_loop(ops, carried, self._draws)
        if any(unordered_ops.is_stateful(op) or self._draws(op) for op in ops):
            self._drawing.add(self._keys.identify_graph(graph))

    def _draws(self, op):
        return any(one in self._drawing for one in self._calls(op))

    def _instrument(self, graph, outputs):
        """Add the probes of one function body: the list of the ops that hand over."""
        needed = _reachable_ops(graph, outputs)
        # The order of creation is an order of execution.
        ops = [op for op in graph.get_operations() if op in needed and op._control_flow_context is None]
        ends = getattr(graph, "_tfdet_trains", False) or any(
            op_traits.is_training_op(op.type) or any(one in self._ending for one in self._calls(op)) for op in ops) \
            or _updates(graph, ops)
        extras, graph._tfdet_extras = getattr(graph, "_tfdet_extras", []), []
        if self._recorder.level in ("unordered", "ops"):
            self._mark_unordered(graph, ops, outputs)
        sinks = self._taps.add_probes(graph, ops)
        with ProbeScope(graph):
            pack = DigestPack(self._keys, tf.use_sum())
            if self._recorder.level == "ops":
                in_place.digest_before_sums(ops, pack.digest_for_all)
            for op in unordered_ops.ops_to_probe(ops, self._recorder.level):
                pack.add_op(op)
            for key, tensor in extras:
                pack.add(key, tensor)
            if pack.keys or ends:
                turn = graph.inputs[0] if self._is_parallel_loop(graph) else None
                with tf.ops.control_dependencies(list(sinks)):  # before a step can end
                    sinks.append(self._add_sink(pack, ends, is_loop(graph), turn))
            sinks.extend(capture_inputs(self._capture, self._keys, ops, self._kept))
        if ends and not is_loop(graph):
            self._ending.add(self._keys.identify_graph(graph))
        calls = [op for op in ops if any(one in self._with_sink for one in self._calls(op))]
        if sinks or calls:
            self._with_sink.add(self._keys.identify_graph(graph))
        _in_order(calls)
        return sinks

    def _calls(self, op):
        return self._keys.called_functions(op) if op.type in op_traits.CALLS else []

    def _add_sink(self, pack, ends, loop, turn=None):
        """turn: the number of the loop's turn, where turns may come in any order."""
        recorder, packed = self._recorder, pack.to_tensor()

        def sink(value=None, number=None):
            if recorder.active:
                if pack.keys:
                    recorder.emit(*pack.unpack_records(value, number))
                if ends:
                    (recorder.steps.on_loop_iteration if loop else recorder.steps.on_function_run)()
            return []

        given = [] if packed is None else [packed] if turn is None else [packed, turn]
        return call_python_with(sink, given, self._kept)


def _after(sinks, graph, outputs):
    """A session runs of a branch or loop body only what is behind its outputs: they wait for the hand-over."""
    def one(value):
        if not tf.is_symbolic(value) or value.graph is not graph or value.op.type == "Placeholder" \
                or value.dtype in (tf.dtypes.resource, tf.dtypes.variant) or value.dtype._is_ref_dtype:
            return value
        with graph.control_dependencies(sinks):
            return tf.array_ops.identity(value)

    with ProbeScope(graph):
        return tf.nest.map_structure(one, outputs, expand_composites=True)


def is_loop(graph):
    """Is it the body (or condition) of a while loop?"""
    return type(graph).__name__ in ("WhileBodyFuncGraph", "WhileCondFuncGraph")


def _reachable_ops(graph, outputs):
    """The ops that will run when the function is called: those behind its outputs and its effects."""
    waiting = [tensor.op for tensor in _tensors(outputs) if tensor.graph is graph]
    waiting += [op for op in graph.get_operations() if _has_effects(op)]
    return ancestors(waiting)


def _tensors(outputs):
    found = []
    for one in tf.nest.flatten(outputs, expand_composites=True):
        if hasattr(one, "indices") and hasattr(one, "values"):  # IndexedSlices are no composites in 1.14
            found += [one.values, one.indices]
        elif hasattr(one, "flow"):  # a TensorArray
            found.append(one.flow)
        else:
            found.append(one)
    return [one for one in found if tf.is_symbolic(one)]


def _has_effects(op):
    if tf.VERSION < (2, 0):
        return tf.auto_control_deps.op_is_stateful(op.op_def)
    return tf.auto_control_deps.op_is_stateful(op)


def _in_order(calls):
    """Two calls of one function must not overlap, or their records would mix. Replicas may have to."""
    last = {}
    for op in calls:
        number = replica_of_scope(op.name)
        if number in last and last[number] not in op.control_inputs:
            op._add_control_inputs([last[number]])
        last[number] = op


def _updates(graph, ops):
    """Is there a step without an optimizer: does it write a variable that it computed a gradient to?"""
    sources = getattr(graph, "_tfdet_sources", [])
    if not sources:
        return False
    inside = {internal.name for external, internal in tf.captures(graph) if any(external is one for one in sources)}
    return any(op_traits.writes_variable(op.type) and op.inputs[0].name in inside for op in ops)
