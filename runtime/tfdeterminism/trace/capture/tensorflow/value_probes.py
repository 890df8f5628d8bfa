"""The ops that pass the values of chosen tensors, and of losses, from graphs to the recorder."""

from . import internals as tf
from .graphs import ProbeScope
from .pack import call_python_with

_NO_NUMBERS = (tf.dtypes.resource, tf.dtypes.variant, tf.dtypes.string)


def mark_loss(recorder, tensor):
    """Note that a gradient of this tensor is computed. A graph's loss is recorded in each run, an eager one now."""
    if tf.is_symbolic(tensor):
        if _has_numbers(tensor) and not getattr(tensor.op, "_tfdet_loss", False):
            tensor.op._tfdet_loss = True
            tensor.graph._tfdet_losses = getattr(tensor.graph, "_tfdet_losses", []) + [tensor]
        return
    if not tf.is_eager(tensor) or not _has_numbers(tensor):
        return
    provenance = getattr(tensor, "_tfdet_key", None)
    if provenance is not None and provenance[0] is recorder:
        recorder.eager.add_attrs(provenance[1], loss=True)
    if recorder.values is not None and recorder.values.is_due():
        nth = recorder.eager.next_occurrence("loss")
        recorder.values.record_loss(recorder.values.loss_name(nth), tensor.numpy())


class ValueProbes(object):
    """The value probes of graphs. kept: a list that keeps the Python functions alive which graphs call.

    keys: a graph_keys.GraphOpIds; an entry of recorder.values is one output whose value is wanted.
    """

    def __init__(self, recorder, keys, kept):
        self._recorder = recorder
        self._keys = keys
        self._kept = kept

    def add_probes(self, graph, ops, contexts=()):
        """Add probes for the chosen outputs of these ops, and for the losses among them; return the new ops.

        Each probe is in the control flow context of its op: none, or one of `contexts`.
        """
        if self._recorder.values is None:
            return []
        probes = []
        with ProbeScope(graph):
            outer_context = graph._get_control_flow_context()
            for op in ops:
                context = op._control_flow_context
                if context is not None and not any(context is other for other in contexts):
                    continue
                graph._set_control_flow_context(context)
                probes += self._probe_op(op)
                probes += [self._probe_loss(loss) for loss in getattr(graph, "_tfdet_losses", ()) if loss.op is op]
            graph._set_control_flow_context(outer_context)
        return probes

    def _probe_op(self, op):
        entries = self._recorder.values.entries_for(*(self._keys.identify_graph(op.graph) + (op.name,)))
        pairs = [(entry, op.outputs[entry["output"]]) for entry in entries if 0 <= entry["output"] < len(op.outputs)]
        return [self._probe_output(entry, tensor) for entry, tensor in pairs if _has_numbers(tensor)]

    def _probe_output(self, entry, tensor):
        key, values = self._keys.key_of_tensor(tensor), self._recorder.values
        return self._add_probe(lambda array: values.record_op(entry, key, array), tensor)

    def _probe_loss(self, tensor):
        values = self._recorder.values
        name = values.loss_name(*(self._keys.identify_graph(tensor.graph) + (tensor.op.name, tensor.value_index)))
        return self._add_probe(lambda array: values.record_loss(name, array), tensor)

    def _add_probe(self, keep, tensor):
        recorder = self._recorder

        def record(array):
            if recorder.active:
                keep(array)
            return []

        return call_python_with(record, [tensor], self._kept)


def _has_numbers(tensor):
    return tensor.dtype not in _NO_NUMBERS and not tensor.dtype._is_ref_dtype
