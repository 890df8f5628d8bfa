"""TensorFlow, 1.13 to the newest.  Its own modules are imported on use: `tfdet` on the host asks for the modes only."""

import os
import sys

from tfdet_probe.frameworks.base import Framework

from . import allocators, errors, placement, solutions


class Adapter(Framework):
    """TensorFlow in this process; frameworks.base.Framework says what each method does."""

    name, title = "tensorflow", "TensorFlow"
    modes = ("eager", "function", "session")

    def own_allocations(self):
        return {"TF_GPU_ALLOCATOR": allocators.own_allocations(allocators.installed_version())}

    def before_import(self):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

    def started(self):
        context = sys.modules.get("tensorflow.python.eager.context")
        current = getattr(context, "_context", None)
        return current is not None and getattr(current, "_context_handle", None) is not None

    def describe(self):
        from . import stack
        return stack.describe()

    def visible(self, placement):
        from . import stack
        return stack.visible(placement)

    def prepare(self, computation, mode, device, settings):
        from . import modes
        return modes.prepare(computation, mode, "/device:" + device, settings)

    def apply(self, call):
        return solutions.apply(call)

    def seed(self, call, seed):
        solutions.seed(call, seed)

    def kernels(self, run):
        import tensorflow as tf

        from . import profile
        return profile.kernels(tf, run)

    def is_op(self, name, op):
        return placement.is_op(name, op)

    def error_text(self, error):
        return errors.error_text(error)

    def classify(self, error):
        return errors.classify(error)

    def refused_by_gradient(self, error, ops):
        return errors.refused_by_gradient(error, ops)
