"""The additional fetches of a session.run, by which the values that it computes are observed.

An op runs only if a fetch needs it, so that each set of fetches has its own pack of digests. The values in the body of
a while loop are passed to the recorder in each iteration.
"""

import weakref

from . import in_place, op_traits, unordered_ops
from . import internals as tf
from .branches import ControlFlowPacker
from .graphs import ProbeScope, ancestors, unfinalized
from .pack import DigestPack, call_python_with, capture_inputs
from .value_probes import ValueProbes


class FetchPlans(object):
    """The FetchPlan of each graph and set of fetches, made at its first run.

    keys: a graph_keys.GraphOpIds, the ids of the outputs of graph ops; labels: a variable_labels.VariableLabels;
    capture: a TensorFlowInputCapture or None.
    graph._tfdet_extras: [(key, tensor)] of losses and outputs of layers, which levels.py adds.
    """

    def __init__(self, recorder, keys, labels, capture):
        self._recorder = recorder
        self._labels = labels
        self._keys = keys
        self._capture = capture
        self._python_functions = []
        self._value_probes = ValueProbes(recorder, keys, self._python_functions)
        self._plans = weakref.WeakKeyDictionary()  # graph: {what is run: plan}

    def plan_for(self, graph, targets, fetches, feeds):
        """Return the FetchPlan of a run."""
        plans = self._plans.setdefault(graph, {})
        name = (tuple(op.name for op in targets), tuple(_name(tensor) for tensor in fetches),
                tuple(_name(tensor) for tensor in feeds))
        if name not in plans:
            with unfinalized(graph):
                if name not in plans:  # another thread may have made it meanwhile
                    plans[name] = self._new_plan(graph, targets, fetches, feeds)
        return plans[name]

    def _new_plan(self, graph, targets, fetches, feeds):
        fed = frozenset(tensor.op for tensor in feeds if hasattr(tensor, "op"))
        roots = list(targets) + [tensor.op for tensor in fetches if hasattr(tensor, "op")]
        needed = ancestors(roots, fed)
        ops = [op for op in graph.get_operations() if op in needed]
        self._prepare(graph)
        with ProbeScope(graph):
            builder = ControlFlowPacker(self._keys)
            pack = DigestPack(self._keys, tf.has_gpus())
            if self._recorder.level in ("unordered", "ops"):
                unordered_ops.mark_session(ops, self._labels)
                pack = builder.pack(None, unordered_ops.ops_to_probe(ops, self._recorder.level), fed)
            for key, tensor in getattr(graph, "_tfdet_extras", []):
                if tensor.op in needed:
                    pack.add(key, tensor)
            fetch = pack.to_tensor()
            unconditional_ops = [op for op in ops if op._control_flow_context is None]
            probes = capture_inputs(self._capture, self._keys, unconditional_ops, self._python_functions)
        contexts = [op._control_flow_context for op in ops if _is_in_branch(op)]
        probes += self._value_probes.add_probes(graph, ops, contexts)
        return FetchPlan(pack, fetch, probes, any(_is_training_op(op) for op in ops))

    def _prepare(self, graph):
        """Change the ops that were created since the last call, before any session has run them."""
        if self._recorder.level not in ("unordered", "ops"):
            return
        start = getattr(graph, "_tfdet_looked_at", 0)
        ops = graph.get_operations()
        graph._tfdet_looked_at = len(ops)
        self._prepare_loops(graph, ops[start:])
        if self._recorder.level != "ops":
            return
        with ProbeScope(graph):
            digest = DigestPack(self._keys, tf.has_gpus()).digest_for_all
            in_place.digest_before_writes(graph, ops[start:], digest)
            in_place.digest_before_sums([op for op in ops[start:] if op._control_flow_context is None], digest)

    def _prepare_loops(self, graph, ops):
        bodies = {}
        for op in ops:
            context = op._control_flow_context
            while context is not None and not context.IsWhileContext():
                context = context.outer_context
            if context is not None:
                bodies.setdefault(context, []).append(op)
        for context, ops_inside in bodies.items():
            self._prepare_loop(graph, context, ops_inside)

    def _prepare_loop(self, graph, context, ops_inside):
        next_iterations = [op for op in ops_inside
                           if op.type == "NextIteration" and op._control_flow_context is context]
        if not next_iterations:
            return
        needed = ancestors(next_iterations)
        iteration = self._mark_unordered(context, ops_inside) if context.parallel_iterations > 1 else None
        overlap = self._recorder.level == "unordered"  # at this level iterations overlap, as without probes
        delayed = [op for op in next_iterations if not (overlap and _is_counter(op))]
        if overlap and (iteration is None or not delayed):
            return  # the iterations cannot be distinguished, or they only count
        probed = unordered_ops.ops_to_probe([op for op in ops_inside if op in needed], self._recorder.level)
        hand_over = self._hand_over(graph, context, probed, [iteration] if overlap else [])
        if hand_over is None:
            return
        needed_ops = [op for op in ops_inside if op in needed]
        probes = [hand_over] + self._value_probes.add_probes(graph, needed_ops, [context])
        for op in delayed[-1:] if overlap else delayed:  # a counter is not delayed, so that the next iteration begins
            op._add_control_inputs(probes)
        for op in ops_inside if not overlap else ():  # iterations that overlap would mix their records
            if op.type in ("Enter", "RefEnter") and op._control_flow_context is context:
                op._set_attr("parallel_iterations", tf.attr_value(i=1))

    def _hand_over(self, graph, context, ops, iteration):
        """Return the op that passes these ops' digests and the iteration to the recorder, or None."""
        recorder = self._recorder
        with ProbeScope(graph):
            graph._set_control_flow_context(context)
            try:
                pack = ControlFlowPacker(self._keys).pack(context, ops)
                packed = pack.to_tensor()
                if packed is None:
                    return None

                def sink(value, number=None):
                    recorder.emit(*pack.unpack_records(value, number))
                    return []

                return call_python_with(sink, [packed] + iteration, self._python_functions)
            finally:
                graph._set_control_flow_context(None)

    def _mark_unordered(self, context, ops_inside):
        merges = [op for op in ops_inside if op.type == "Merge" and op._control_flow_context is context]
        merges = [op for op in merges if len(op.inputs) > 1]
        inputs, outputs = [op.outputs[0] for op in merges], [op.inputs[1] for op in merges]
        unordered_ops.mark_loop(ops_inside, unordered_ops.loop_carried_ops(inputs, outputs), lambda op: False)
        return unordered_ops.loop_counter(inputs, outputs)


class FetchPlan(object):
    """The additions to one run.

    pack: the digests; fetch: the tensor to fetch for it, or None; targets: additional ops to run; trains: whether the
    run ends a training step.
    """

    def __init__(self, pack, fetch, targets, trains):
        self.targets = targets
        self.pack = pack
        self.fetch = fetch
        self.trains = trains


def _is_in_branch(op):
    """Return whether an op is in a branch, and in no loop."""
    context = op._control_flow_context
    return context is not None and not context.IsWhileContext() and context.outer_context is None


def _is_counter(next_iteration):
    """Return whether a NextIteration passes on a counter of iterations."""
    return next_iteration.outputs[0].dtype.is_integer and next_iteration.outputs[0].shape.rank == 0


def _is_training_op(op):
    return op_traits.is_training_op(op.type) or (op_traits.writes_variable(op.type) and "gradients/" in op.name)


def _name(element):
    return getattr(element, "name", str(element))
