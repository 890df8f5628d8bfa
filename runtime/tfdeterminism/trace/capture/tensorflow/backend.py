"""The backend for TensorFlow 1.14 to 2.21. This module does not import TensorFlow: methods that need it do."""

import importlib

from ...backends import Backend
from . import advice, op_traits


class TensorFlowBackend(Backend):
    """TensorFlow; backends.Backend says what each method does."""

    name, label = "tensorflow", "TensorFlow"
    packages = ("tensorflow", "tensorflow_core", "keras", "tf_keras", "tensorflow_estimator")
    uses_matrix = True
    seed_lines = ("import tensorflow", "tensorflow.random.set_seed({})")
    switch_lines = ("import tensorflow", "tensorflow.config.experimental.enable_op_determinism()")
    thread_lines = ("import tensorflow",
                    "tensorflow.config.threading.set_intra_op_parallelism_threads(1)",
                    "tensorflow.config.threading.set_inter_op_parallelism_threads(1)")

    def install(self, recording):
        _module("install").install(recording)

    def traits(self, op_type):
        return op_traits.traits_of(op_type)

    def attributes(self, op_type):
        return op_traits.families(op_type)

    def is_pure(self, op_type):
        return _module("replay").is_pure(op_type)

    def replay(self, meta, arrays, times):
        return _module("replay").run(meta, arrays, times)

    def apply_solutions(self, module, names):
        from .... import enable_determinism, patch
        if "TDP" in names:
            patch()
        if "TEOD" in names:
            module.config.experimental.enable_op_determinism()
        if "ED" in names:
            enable_determinism()
        if {"SEED", "KSEED", "TEOD", "ED"} & set(names):
            _module("seeding").seed(1)
        if "KSEED" in names:
            module.keras.utils.set_random_seed(1)

    def interpose(self, kinds, module):
        _module("interposed").interpose(kinds, module)

    def advice_lines(self, fault, op_type, on_gpu):
        return advice.lines(fault, op_type)

    def matrix_source(self, fault, question):
        return advice.matrix_source(fault, question)

    def solution_of(self, lines):
        return "SEED" if advice.SEED_LINE in lines else None


def _module(name):
    return importlib.import_module(__package__ + "." + name)
