"""A Keras model with a replaced op, saved in each file format of Keras and loaded again."""

import tensorflow as tf
from saved_base_checks import VERSION, path, values
from saved_functions_checks import derivatives


class Sums(tf.keras.layers.Layer):
    """Sums the rows of its input by the replaced op unsorted_segment_sum."""

    def call(self, x):
        return tf.math.unsorted_segment_sum(x, tf.cast(tf.zeros_like(x[:, 0]), tf.int32), 3)


def model():
    return tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(2,), kernel_initializer="ones"), Sums()])


def model_results(loaded):
    """{"model": [outputs, first gradient, second gradient]} of a model, see saved_functions_checks.derivatives."""
    return {"model": derivatives("model", loaded, values((4, 2)))}


def keras_formats():
    """{format: file name} of the formats that this version of Keras can write."""
    formats = {"keras h5": "model.h5"}
    if VERSION < (2, 16):
        formats["keras SavedModel"] = "model"
    if VERSION >= (2, 13):
        formats["keras zip"] = "model.keras"
    return formats


def load_models():
    """{format: model_results()} of the saved models."""
    models = {}
    for name, file in keras_formats().items():
        objects = None if "SavedModel" in name else {"Sums": Sums}
        try:
            models[name] = model_results(tf.keras.models.load_model(path(file), custom_objects=objects, compile=False))
        except AttributeError:
            models[name] = {"model": [None, None, None]}  # 2.0 cannot read its own files with a newer h5py
    return models
