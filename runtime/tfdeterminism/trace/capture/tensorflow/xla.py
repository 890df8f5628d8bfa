"""XLA fuses ops, and a fused op has no outputs to observe: it is switched off while ops are traced."""

from . import internals as tf

_ATTRIBUTES = ("_jit_compile", "_experimental_compile")


def switch_off(recorder, wrappers):
    """Functions that ask for compilation are made without it; the first one is noted in the trace."""
    noted = []

    def made(original, function, *args, **kwargs):
        result = original(function, *args, **kwargs)
        for name in _ATTRIBUTES:
            if recorder.active and getattr(function, name, None):
                setattr(function, name, False)
                if not noted:
                    noted.append(True)
                    recorder.note("xla", "jit_compile was asked for and is switched off while tracing")
        return result

    for module in ("tensorflow.python.eager.polymorphic_function.polymorphic_function",
                   "tensorflow.python.eager.def_function"):
        owner = getattr(tf.optional(module), "Function", None)
        if owner is not None:
            wrappers.wrap(owner, "__init__", made)
            break
    config = tf.optional("tensorflow.python.framework.config")
    # Before 2.0 asking would make the context, and settle for the program that it is not eager.
    if tf.VERSION >= (2, 1) and config.get_optimizer_jit():
        config.set_optimizer_jit(False)
        recorder.note("xla", "auto-clustering was asked for and is switched off while tracing")
