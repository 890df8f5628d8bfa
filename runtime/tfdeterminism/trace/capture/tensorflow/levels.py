"""The ends of steps, and the records of the coarse levels: weights and losses of steps, outputs of layers."""

import threading

from .. import digest, pool_tasks
from ..coarse_levels import CoarseRecorder
from . import internals as tf
from .value_probes import mark_loss

# {module: classes whose apply or apply_gradients ends a step}. Keras has several modules, which are imported late.
STEPS = {"tensorflow.python.training.optimizer": ("Optimizer",),
         "tensorflow.python.keras.optimizer_v2.optimizer_v2": ("OptimizerV2",),
         "keras.optimizer_v2.optimizer_v2": ("OptimizerV2",),
         "keras.optimizers.optimizer_v2.optimizer_v2": ("OptimizerV2",),
         "keras.optimizers.legacy.optimizer_v2": ("OptimizerV2",),
         "keras.optimizers.optimizer_experimental.optimizer": ("_BaseOptimizer",),
         "keras.optimizers.optimizer": ("_BaseOptimizer",),
         "keras.src.optimizers.optimizer": ("_BaseOptimizer",),
         "keras.src.optimizers.base_optimizer": ("BaseOptimizer",),
         "keras.src.optimizers.legacy.optimizer_v2": ("OptimizerV2",),
         "tf_keras.src.optimizers.optimizer": ("_BaseOptimizer",),
         "tf_keras.src.optimizers.legacy.optimizer_v2": ("OptimizerV2",)}
LAYERS = {"tensorflow.python.keras.engine.base_layer": "Layer", "keras.engine.base_layer": "Layer",
          "keras.src.engine.base_layer": "Layer", "keras.src.layers.layer": "Layer",
          "tf_keras.src.engine.base_layer": "Layer"}


class Levels(object):
    """The probes for steps and coarse levels.

    keys: a graph_keys.GraphOpIds; labels: a variable_labels.VariableLabels. The attributes _tfdet_trains,
    _tfdet_sources and _tfdet_extras of a graph say what functions.py or fetch_plans.py adds to it.
    """

    def __init__(self, recorder, keys, labels, wrappers):
        self._recorder = recorder
        self._keys = keys
        self._labels = labels
        self._wrappers = wrappers
        self._local = threading.local()
        self._coarse = CoarseRecorder(recorder)
        wrappers.wrap(tf.backprop.GradientTape, "gradient", self._gradient)
        helper = tf.optional("tensorflow.python.ops.gradients_util")
        if hasattr(helper, "_GradientsHelper"):
            wrappers.wrap(helper, "_GradientsHelper", self._graph_gradient)
        if recorder.level in ("weights", "layers") or recorder.values is not None:
            recorder.add_step_callback(self._weights)

    def modules(self):
        """Return {module: function(module) to call once it is imported}."""
        hooks = {name: self._watch_optimizers for name in STEPS}
        if self._recorder.level == "layers":
            hooks.update((name, self._watch_layers) for name in LAYERS)
        return hooks

    def _watch_optimizers(self, module):
        for name in STEPS[module.__name__.replace("tensorflow_core.", "tensorflow.")]:
            owner = getattr(module, name, None)
            for method in ("apply", "apply_gradients"):
                if owner is not None and method in vars(owner):
                    self._wrappers.wrap(owner, method, self._apply)

    def _watch_layers(self, module):
        self._wrappers.wrap(module.Layer, "__call__", self._layer)

    # Steps

    def _apply(self, original, *args, **kwargs):
        """End a step after the outermost of nested calls: apply_gradients calls apply."""
        if getattr(self._local, "applying", False) or not self._recorder.active:
            return original(*args, **kwargs)
        self._local.applying = True
        try:
            result = original(*args, **kwargs)
        finally:
            self._local.applying = False
        graph = self._graph()
        if graph is None:
            self._recorder.steps.on_optimizer_applied()
        else:
            graph._tfdet_trains = True
        return result

    def _gradient(self, original, tape, target, *args, **kwargs):
        if not self._recorder.active:
            return original(tape, target, *args, **kwargs)
        graph = self._graph()
        if graph is None:
            self._recorder.steps.on_gradient()
        else:
            sources = kwargs.get("sources", args[0] if args else [])
            handles = [handle for handle in map(_handle, tf.nest.flatten(sources)) if handle is not None]
            graph._tfdet_sources = getattr(graph, "_tfdet_sources", []) + handles
        for number, tensor in enumerate(tf.nest.flatten(target)):
            mark_loss(self._recorder, tensor)
            if self._recorder.level in ("weights", "layers"):
                self._value("loss", "loss", tensor, number)
        return original(tape, target, *args, **kwargs)

    def _graph_gradient(self, original, ys, xs, grad_ys=None, *args, **kwargs):
        """Mark the losses of tf.gradients, which optimizers call, too.

        With grad_ys the call is a part of another gradient, and has no loss.
        """
        if self._recorder.active and not any(gradient is not None for gradient in tf.nest.flatten(grad_ys)):
            for tensor in tf.nest.flatten(ys):
                mark_loss(self._recorder, getattr(tensor, "values", tensor))
        return original(ys, xs, grad_ys, *args, **kwargs)

    def _graph(self):
        """Return the graph that is being built, or None if ops run eagerly."""
        return None if tf.context.executing_eagerly() else tf.ops.get_default_graph()

    # Values

    def _layer(self, original, layer, *args, **kwargs):
        path = getattr(self._local, "path", ())
        self._local.path = path + (layer.name,)
        try:
            result = original(layer, *args, **kwargs)
        finally:
            self._local.path = path
        if self._recorder.active:
            for number, tensor in enumerate(tf.nest.flatten(result)):
                self._value("layer", "/".join(path + (layer.name,)), tensor, number)
        return result

    def _value(self, kind, name, tensor, number):
        """Record a value now, or make the function that computes it record it."""
        if tf.is_symbolic(tensor):
            if tensor.dtype in (tf.dtypes.resource, tf.dtypes.variant) or tensor.dtype._is_ref_dtype:
                return
            function, trace = self._keys.identify_graph(tensor.graph)
            nth = self._recorder.eager.next_occurrence("value", function, trace, kind, name, number)
            key = self._recorder.definitions.new_key(
                op=kind, node="{}#{}".format(name, nth), output=number, kind=kind, layer=name, function=function,
                trace=trace, dtype=tensor.dtype.base_dtype.name, shape=tf.shape_list(tensor))
            tensor.graph._tfdet_extras = getattr(tensor.graph, "_tfdet_extras", []) + [(key, tensor)]
        elif tf.is_eager(tensor) and tensor.dtype not in (tf.dtypes.resource, tf.dtypes.variant):
            nth = self._recorder.eager.next_occurrence("value", kind, name, number)
            node = pool_tasks.name_in_task("{}#{}".format(name, nth))
            self._coarse.record(kind, node, number, digest.digest_array(tensor.numpy()), name)

    def _weights(self):
        has_digests = self._recorder.level in ("weights", "layers")
        has_values = self._recorder.values is not None and self._recorder.values.is_due()
        values = self._labels.trained_values() if has_digests or has_values else {}
        for label in sorted(values) if has_digests else ():
            self._coarse.record("weight", label, 0, digest.digest_array(values[label]))
        if has_values:
            self._recorder.values.record_weights(values)


def _handle(variable):
    """Return the resource handle of a variable, None if it has none."""
    try:
        return getattr(variable, "handle", None)
    except (ValueError, RuntimeError):  # a variable of several replicas, outside of a replica
        return None
