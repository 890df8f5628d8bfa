"""The probes for graph functions: tf.function, Keras steps, gradients, bodies of while, cond and map_fn.

When Python has built a function's graph, digests of all outputs that the function computes are added. They are packed
into one tensor, which is passed to the recorder once per call. This costs two cheap nodes per output instead of a call
into Python.
"""

import threading

from . import in_place, op_traits, unordered_ops
from . import internals as tf
from .graph_keys import replica_of_scope
from .graphs import ProbeScope, ancestors
from .pack import DigestPack, call_python_with, capture_inputs
from .value_probes import ValueProbes

# TensorFlow rewrites these, or runs them at any time: input pipelines, vectorized loops, exports.
_LEFT_ALONE = (("tensorflow.python.data.ops.structured_function", "StructuredFunctionWrapper", "__init__"),
               ("tensorflow.python.data.ops.dataset_ops", "StructuredFunctionWrapper", "__init__"),
               ("tensorflow.python.ops.parallel_for.control_flow_ops", None, "pfor"),
               ("tensorflow.python.saved_model.save", None, "save"))


class FunctionInstrumenter(object):
    """The instrumentation of every graph function that is traced while it is installed.

    keys: a graph_keys.GraphOpIds, the ids of the outputs of graph ops and the identities of graphs; capture: a
    TensorFlowInputCapture or None. levels.py sets attributes of graphs:
    _tfdet_trains (an optimizer was applied in it), _tfdet_sources (handles of the variables that gradients were taken
    to), _tfdet_extras ([(key, tensor)] of losses and outputs of layers). A sink is an op that passes digests to the
    recorder.
    """

    def __init__(self, recorder, keys, capture, wrappers):
        self._capture = capture
        self._recorder = recorder
        self._keys = keys
        self._local = threading.local()
        self._python_functions = []      # kept alive here: TensorFlow has only weak references to Python functions
        self._value_probes = ValueProbes(recorder, keys, self._python_functions)
        self._functions_with_sink = set()  # identities of functions that pass digests to the recorder
        self._training_functions = set()   # identities of functions that contain a training step
        wrappers.wrap(tf.func_graph, "func_graph_from_py_func", self._build)
        self._stateful_functions = set()   # identities of functions that contain a stateful op
        wrappers.wrap(tf.while_v2, "while_loop", self._loop)
        self._wrap_naming(wrappers)
        wrappers.wrap(tf.function_def_to_graph, "function_def_to_graph", self._on_copied)
        concrete = getattr(tf.optional("tensorflow.python.eager.function"), "ConcreteFunction", None)
        if tf.VERSION < (2, 4) and concrete is not None:
            wrappers.wrap(concrete, "__init__", self._on_function_created)
        for module, owner, name in _LEFT_ALONE:
            holder = tf.optional(module)
            holder = getattr(holder, owner, None) if owner else holder
            if holder is not None and hasattr(holder, name):
                wrappers.wrap(holder, name, self._leave_alone)

    def _wrap_naming(self, wrappers):
        atomic = tf.optional("tensorflow.python.eager.polymorphic_function.atomic_function")
        if hasattr(atomic, "from_func_graph"):
            wrappers.wrap(atomic, "from_func_graph", self._on_named)
            return
        for module in ("tensorflow.python.eager.polymorphic_function.monomorphic_function",
                       "tensorflow.python.eager.function"):
            function_class = getattr(tf.optional(module), "_EagerDefinedFunction", None)
            if function_class is not None:
                wrappers.wrap(function_class, "__init__", self._on_named_in_init)
                return

    def _on_named(self, original, name, graph, *args, **kwargs):
        self._keys.name_function(name, graph)
        return original(name, graph, *args, **kwargs)

    def _on_named_in_init(self, original, function, name, graph, *args, **kwargs):
        self._keys.name_function(name, graph)
        return original(function, name, graph, *args, **kwargs)

    def _on_copied(self, original, fdef, *args, **kwargs):
        """Register the copy of a branch or body that a gradient runs instead of the original."""
        copy = original(fdef, *args, **kwargs)
        self._keys.on_function_copied(fdef.signature.name, copy)
        return copy

    def _on_function_created(self, original, function, graph, *args, **kwargs):
        """Instrument a function whose graph Keras up to 2.3 copied without func_graph_from_py_func."""
        if self._recorder.active and not getattr(self._local, "left_alone", False) \
                and not hasattr(graph, "_tfdet_extras"):
            graph.control_outputs.extend(self._instrument(graph, graph.outputs))
        return original(function, graph, *args, **kwargs)

    def _leave_alone(self, original, *args, **kwargs):
        was_left_alone, self._local.left_alone = getattr(self._local, "left_alone", False), True
        try:
            return original(*args, **kwargs)
        finally:
            self._local.left_alone = was_left_alone

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
                    outputs = _wait_for_sinks(sinks, graph, outputs)
            return outputs

        graph = original(name, tf.tf_decorator.make_decorator(python_func, build), *args, **kwargs)
        if self._is_parallel_loop(graph):  # TensorFlow would order the iterations if it saw the sinks while building
            sinks = unordered_ops.add_control_inputs(self._instrument(graph, graph.outputs), graph.outputs)
        graph.control_outputs.extend(sink for sink in sinks if sink not in graph.control_outputs)
        return graph

    def _is_parallel_loop(self, graph):
        """Return whether a graph is the body of a loop whose iterations may overlap."""
        return self._recorder.level == "unordered" and is_loop(graph)

    def _loop(self, original, *args, **kwargs):
        """Run the iterations of a loop one after the other at level "ops", so that their records are ordered.

        At level "unordered" iterations overlap, and their numbers become part of the digests.
        """
        previous = getattr(self._local, "parallel", 1)
        self._local.parallel = kwargs.get("parallel_iterations") or 1
        if self._recorder.level == "ops":
            kwargs["parallel_iterations"] = 1
        try:
            return original(*args, **kwargs)
        finally:
            self._local.parallel = previous

    def _mark_unordered(self, graph, ops, outputs):
        """Mark the ops whose order in a parallel loop is open, and note stateful functions."""
        if type(graph).__name__ == "WhileBodyFuncGraph" and getattr(self._local, "parallel", 1) > 1:
            carried = unordered_ops.loop_carried_ops(graph.inputs, _tensors(outputs))
            unordered_ops.mark_loop(ops, carried, self._calls_stateful_function)
        if any(unordered_ops.is_stateful(op) or self._calls_stateful_function(op) for op in ops):
            self._stateful_functions.add(self._keys.identify_graph(graph))

    def _calls_stateful_function(self, op):
        return any(function in self._stateful_functions for function in self._called_by(op))

    def _instrument(self, graph, outputs):
        """Add the probes of one function body and return the ops that pass digests to the recorder."""
        needed = _reachable_ops(graph, outputs)
        # The order of creation is an order of execution.
        ops = [op for op in graph.get_operations() if op in needed and op._control_flow_context is None]
        ends_step = getattr(graph, "_tfdet_trains", False) or any(
            op_traits.is_training_op(op.type)
            or any(function in self._training_functions for function in self._called_by(op)) for op in ops) \
            or _updates_variables(graph, ops)
        extras, graph._tfdet_extras = getattr(graph, "_tfdet_extras", []), []
        if self._recorder.level in ("unordered", "ops"):
            self._mark_unordered(graph, ops, outputs)
        sinks = self._value_probes.add_probes(graph, ops)
        with ProbeScope(graph):
            pack = DigestPack(self._keys, tf.has_gpus())
            if self._recorder.level == "ops":
                in_place.digest_before_sums(ops, pack.digest_for_all)
            for op in unordered_ops.ops_to_probe(ops, self._recorder.level):
                pack.add_op(op)
            for key, tensor in extras:
                pack.add(key, tensor)
            if pack.keys or ends_step:
                iteration = graph.inputs[0] if self._is_parallel_loop(graph) else None
                with tf.ops.control_dependencies(list(sinks)):  # before a step can end
                    sinks.append(self._add_sink(pack, ends_step, is_loop(graph), iteration))
            sinks.extend(capture_inputs(self._capture, self._keys, ops, self._python_functions))
        if ends_step and not is_loop(graph):
            self._training_functions.add(self._keys.identify_graph(graph))
        calls = [op for op in ops if any(function in self._functions_with_sink for function in self._called_by(op))]
        if sinks or calls:
            self._functions_with_sink.add(self._keys.identify_graph(graph))
        _order_calls(calls)
        return sinks

    def _called_by(self, op):
        return self._keys.called_functions(op) if op.type in op_traits.CALLS else []

    def _add_sink(self, pack, ends_step, in_loop, iteration=None):
        """Return an op that passes a pack to the recorder.

        iteration: tensor with the number of the loop's iteration, if iterations may run in any order.
        """
        recorder, packed = self._recorder, pack.to_tensor()

        def sink(value=None, number=None):
            if recorder.active:
                if pack.keys:
                    recorder.emit(*pack.unpack_records(value, number))
                if ends_step:
                    (recorder.steps.on_loop_iteration if in_loop else recorder.steps.on_function_run)()
            return []

        tensors = [] if packed is None else [packed] if iteration is None else [packed, iteration]
        return call_python_with(sink, tensors, self._python_functions)


def _wait_for_sinks(sinks, graph, outputs):
    """Return the outputs with control dependencies on the sinks.

    A session runs only the ops of a branch or loop body that its outputs depend on.
    """
    def add_dependency(value):
        if not tf.is_symbolic(value) or value.graph is not graph or value.op.type == "Placeholder" \
                or value.dtype in (tf.dtypes.resource, tf.dtypes.variant) or value.dtype._is_ref_dtype:
            return value
        with graph.control_dependencies(sinks):
            return tf.array_ops.identity(value)

    with ProbeScope(graph):
        return tf.nest.map_structure(add_dependency, outputs, expand_composites=True)


def is_loop(graph):
    """Return whether a graph is the body or condition of a while loop."""
    return type(graph).__name__ in ("WhileBodyFuncGraph", "WhileCondFuncGraph")


def _reachable_ops(graph, outputs):
    """Return the ops that will run when the function is called: those behind its outputs and its effects."""
    roots = [tensor.op for tensor in _tensors(outputs) if tensor.graph is graph]
    roots += [op for op in graph.get_operations() if _has_effects(op)]
    return ancestors(roots)


def _tensors(outputs):
    tensors = []
    for output in tf.nest.flatten(outputs, expand_composites=True):
        if hasattr(output, "indices") and hasattr(output, "values"):  # IndexedSlices are no composites in 1.14
            tensors += [output.values, output.indices]
        elif hasattr(output, "flow"):  # a TensorArray
            tensors.append(output.flow)
        else:
            tensors.append(output)
    return [tensor for tensor in tensors if tf.is_symbolic(tensor)]


def _has_effects(op):
    if tf.VERSION < (2, 0):
        return tf.auto_control_deps.op_is_stateful(op.op_def)
    return tf.auto_control_deps.op_is_stateful(op)


def _order_calls(calls):
    """Order the calls that one graph makes in each replica, because their records would mix if they overlapped."""
    last_calls = {}
    for op in calls:
        replica = replica_of_scope(op.name)
        if replica in last_calls and last_calls[replica] not in op.control_inputs:
            op._add_control_inputs([last_calls[replica]])
        last_calls[replica] = op


def _updates_variables(graph, ops):
    """Return whether a function without an optimizer writes a variable after computing a gradient to it."""
    sources = getattr(graph, "_tfdet_sources", [])
    if not sources:
        return False
    internal_names = {internal.name for external, internal in tf.captures(graph)
                      if any(external is source for source in sources)}
    return any(op_traits.writes_variable(op.type) and op.inputs[0].name in internal_names for op in ops)
