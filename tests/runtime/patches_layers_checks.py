"""Keras layers and losses that use replaced ops, forward and backward."""

import numpy as np
import tensorflow as tf
from patches_base_checks import tf1


def keras_layers():
    """Return [(name, patch key, function that makes the layer, shape of its input, dtype of its input)]."""
    k = tf.keras
    image, sequence, volume = (2, 6, 6, 2), (2, 6, 2), (2, 4, 4, 4, 2)
    return [
        ("Conv1D", "bias-add", lambda: k.layers.Conv1D(3, 3), sequence, "float32"),
        ("Conv2D", "bias-add", lambda: k.layers.Conv2D(3, 3), image, "float32"),
        ("Conv3D", "bias-add", lambda: k.layers.Conv3D(3, 3), volume, "float32"),
        ("Dense", "bias-add", lambda: k.layers.Dense(3), (2, 4), "float32"),
        ("Embedding", "unsorted-segment", lambda: k.layers.Embedding(7, 3), (2, 5), "int32"),
        ("UpSampling2D nearest", "resize-nearest", lambda: k.layers.UpSampling2D(2), image, "float32"),
        ("UpSampling2D bilinear", "resize-bilinear", lambda: k.layers.UpSampling2D(2, interpolation="bilinear"), image,
         "float32"),
        ("DepthwiseConv2D", "depthwise-conv-filter", lambda: k.layers.DepthwiseConv2D(3), image, "float32"),
        ("BatchNormalization frozen", "fused-batch-norm-inference", lambda: Frozen(k.layers.BatchNormalization()),
         image, "float32"),
        ("CategoricalCrossentropy", "softmax-xent",
         lambda: Loss(k.losses.CategoricalCrossentropy(from_logits=True), np.eye(4, dtype="float32")), (4, 4),
         "float32"),
        ("SparseCategoricalCrossentropy", "sparse-softmax-xent",
         lambda: Loss(k.losses.SparseCategoricalCrossentropy(from_logits=True), np.arange(4)), (4, 4), "float32"),
    ]


class Frozen(object):
    """Calls a layer in inference mode."""
    def __init__(self, layer):
        self._layer = layer

    def __call__(self, x):
        return self._layer(x, training=False)

    @property
    def trainable_variables(self):
        return self._layer.trainable_variables


class Loss(object):
    """Calls a loss with fixed labels, like a layer."""
    trainable_variables = ()

    def __init__(self, loss, labels):
        self._loss, self._labels = loss, labels

    def __call__(self, x):
        return self._loss(tf.constant(self._labels), x)


def traced_graph(make, value):
    """Return the graph of a training step with the layer, as tf.function traces it."""
    layer = make()
    layer(tf.constant(value))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(layer(x) ** 2)
        watched = list(layer.trainable_variables) + ([x] if x.dtype.is_floating else [])
        return [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, watched) if gradient is not None]
    traced = step.get_concrete_function(tf.constant(value))  # the graph does not outlive it
    return traced.graph.as_graph_def()


def built_graph(make, value):
    """Return the graph of a training step with the layer, built in graph mode of TensorFlow 1."""
    with tf.Graph().as_default() as graph:
        layer, x = make(), tf.constant(value)
        y = layer(x)
        watched = list(layer.trainable_variables) + ([x] if x.dtype.is_floating else [])
        for gradient in tf1.gradients(tf.reduce_sum(y ** 2), watched):
            if gradient is not None:
                tf.convert_to_tensor(gradient)
    return graph.as_graph_def()
