"""The switch that disables XLA while ops are recorded, because the outputs of fused ops cannot be observed."""

from . import internals as tf

_ATTRIBUTES = ("_jit_compile", "_experimental_compile")


def switch_off(recorder, wrappers):
    """Create functions without compilation; the first one that asks for it is noted in the trace."""
    notes = []

    def on_function_created(original, function, *args, **kwargs):
        result = original(function, *args, **kwargs)
        for name in _ATTRIBUTES:
            if recorder.active and getattr(function, name, None):
                setattr(function, name, False)
                if not notes:
                    notes.append(True)
                    recorder.note("xla", "jit_compile was asked for and is switched off while tracing")
        return result

    for module in ("tensorflow.python.eager.polymorphic_function.polymorphic_function",
                   "tensorflow.python.eager.def_function"):
        owner = getattr(tf.optional(module), "Function", None)
        if owner is not None:
            wrappers.wrap(owner, "__init__", on_function_created)
            break
    config = tf.optional("tensorflow.python.framework.config")
    # Before 2.0 this query would create the context, and thereby disable eager execution.
    if tf.VERSION >= (2, 1) and config.get_optimizer_jit():
        config.set_optimizer_jit(False)
        recorder.note("xla", "auto-clustering was asked for and is switched off while tracing")
