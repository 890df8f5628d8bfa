"""What is fetched besides, in one session.run, to observe what it computes.

An op runs only when a fetch needs it, so each set of fetches gets a pack of its own. What is in the body of a while
loop is handed over in each iteration.
"""

import weakref

from . import in_place, op_traits, unordered_ops
from . import internals as tf
from .branches import ControlFlowPacker
from .graphs import ProbeScope, ancestors, unfinalized
from .pack import DigestPack, call_python_with, capture_inputs
from .value_probes import ValueProbes


class FetchPlans(object):
    """Of each graph and set of fetches, made when it is first run."""

    def __init__(self, recorder, keys, labels, capture):
        self._recorder = recorder
        self._labels = labels
        self._keys = keys
        self._capture = capture
        self._kept = []
        self._taps = ValueProbes(recorder, keys, self._kept)
        self._plans = weakref.WeakKeyDictionary()  # graph: {what is run: plan}

    def plan_for(self, graph, targets, fetches, feeds):
        """The FetchPlan of a run."""
        plans = self._plans.setdefault(graph, {})
        name = (tuple(op.name for op in targets), tuple(_name(one) for one in fetches),
                tuple(_name(one) for one in feeds))
        if name not in plans:
            with unfinalized(graph):
                if name not in plans:  # another thread may have come first
                    plans[name] = self._new_plan(graph, targets, fetches, feeds)
        return plans[name]

    def _new_plan(self, graph, targets, fetches, feeds):
        fed = frozenset(one.op for one in feeds if hasattr(one, "op"))
        waiting = list(targets) + [one.op for one in fetches if hasattr(one, "op")]
        needed = ancestors(waiting, fed)
        ops = [op for op in graph.get_operations() if op in needed]
        self._prepare(graph)
        with ProbeScope(graph):
            builder = ControlFlowPacker(self._keys)
            pack = DigestPack(self._keys, tf.use_sum())
            if self._recorder.level in ("unordered", "ops"):
                unordered_ops.mark_session(ops, self._labels)
                pack = builder.pack(None, unordered_ops.ops_to_probe(ops, self._recorder.level), fed)
            for key, tensor in getattr(graph, "_tfdet_extras", []):
                if tensor.op in needed:
                    pack.add(key, tensor)
            fetch = pack.to_tensor()
            plain = [op for op in ops if op._control_flow_context is None]
            kept = capture_inputs(self._capture, self._keys, plain, self._kept)
        kept += self._taps.add_probes(graph, ops, [op._control_flow_context for op in ops if _in_cond(op)])
        return FetchPlan(pack, fetch, kept, any(_trains(op) for op in ops))

    def _prepare(self, graph):
        """What must be done to the ops that came since last time, before any session sees them."""
        if self._recorder.level not in ("unordered", "ops"):
            return
        first = getattr(graph, "_tfdet_looked_at", 0)
        ops = graph.get_operations()
        graph._tfdet_looked_at = len(ops)
        self._loops(graph, ops[first:])
        if self._recorder.level != "ops":
            return
        with ProbeScope(graph):
            digest = DigestPack(self._keys, tf.use_sum()).digest_for_all
            in_place.digest_before_writes(graph, ops[first:], digest)
            in_place.digest_before_sums([op for op in ops[first:] if op._control_flow_context is None], digest)

    def _loops(self, graph, ops):
        bodies = {}
        for op in ops:
            context = op._control_flow_context
            while context is not None and not context.IsWhileContext():
                context = context.outer_context
            if context is not None:
                bodies.setdefault(context, []).append(op)
        for context, inside in bodies.items():
            self._loop(graph, context, inside)

    def _loop(self, graph, context, inside):
        nexts = [op for op in inside if op.type == "NextIteration" and op._control_flow_context is context]
        if not nexts:
            return
        needed = ancestors(nexts)
        turn = self._mark_open(context, inside) if context.parallel_iterations > 1 else None
        overlap = self._recorder.level == "unordered"
        waiting = [op for op in nexts if not (overlap and _counts(op))]
        if overlap and (turn is None or not waiting):
            return  # nobody could tell its turns apart, or they do nothing but count
        probed = unordered_ops.ops_to_probe([op for op in inside if op in needed], self._recorder.level)
        done = self._hand_over(graph, context, probed, [turn] if overlap else [])
        if done is None:
            return
        made = [done] + self._taps.add_probes(graph, [op for op in inside if op in needed], [context])
        for op in waiting[-1:] if overlap else waiting:  # what counts goes on, and the next turn with it
            op._add_control_inputs(made)
        for op in inside if not overlap else ():  # iterations that overlap would mix their records
            if op.type in ("Enter", "RefEnter") and op._control_flow_context is context:
                op._set_attr("parallel_iterations", tf.attr_value(i=1))

    def _hand_over(self, graph, context, ops, turn):
        """The op that hands over what these ops of a loop's body gave, and the number of the turn; None for nothing."""
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

                return call_python_with(sink, [packed] + turn, self._kept)
            finally:
                graph._set_control_flow_context(None)

    def _mark_open(self, context, inside):
        merges = [op for op in inside if op.type == "Merge" and op._control_flow_context is context]
        merges = [op for op in merges if len(op.inputs) > 1]
        inputs, outputs = [op.outputs[0] for op in merges], [op.inputs[1] for op in merges]
        unordered_ops.mark_loop(inside, unordered_ops.loop_carried_ops(inputs, outputs), lambda op: False)
        return unordered_ops.loop_counter(inputs, outputs)


class FetchPlan(object):
    """pack: what comes back; fetch: the tensor to fetch for it, or None; targets: ops to run besides;
    trains: does it end a step?"""

    def __init__(self, pack, fetch, targets, trains):
        self.targets = targets
        self.pack = pack
        self.fetch = fetch
        self.trains = trains


def _in_cond(op):
    """Is it in a branch, and in no loop?"""
    context = op._control_flow_context
    return context is not None and not context.IsWhileContext() and context.outer_context is None


def _counts(following):
    """Does this NextIteration hand on a number of turns?"""
    return following.outputs[0].dtype.is_integer and following.outputs[0].shape.rank == 0


def _trains(op):
    return op_traits.is_training_op(op.type) or (op_traits.writes_variable(op.type) and "gradients/" in op.name)


def _name(one):
    return getattr(one, "name", str(one))
