"""The debug tool: records digests of what a program computes, and names the first op that differs.

    with tfdeterminism.trace.record("A"):
        train()

    model.fit(..., callbacks=[tfdeterminism.trace.callback("A")])

Functions that were traced before recording began hold no probes: begin before the first call.
Importing this imports neither TensorFlow nor NumPy.
"""

__all__ = ["callback", "record", "step"]


def record(out, level="ops", steps=None, capture=None, xla=None, values=None):
    """A context manager: what runs inside is recorded into a new file in the folder `out`.

    level: "none" (digest of the final weights alone), "weights", "layers", "unordered" (the ops alone whose
    order the graphs leave open) or "ops"; steps: (first, end) or None; capture: an op whose inputs are
    kept, see capture/inputs.py; values: list of outputs whose values are kept, with those of losses and
    weights, see capture/values.py. Raises UsageError.
    """
    from .capture.recording import Recording
    return Recording(out, level, steps, capture, xla, values)


def step():
    """Say that a training step ends here. Without it the optimizer's updates say so."""
    from .capture.recording import end_step_everywhere
    end_step_everywhere()


def callback(out, level="ops", steps=None):
    """A Keras callback that records `fit` into the folder `out`. level, steps: as for record."""
    from .capture.tensorflow.callback import make
    return make(out, level, steps)
