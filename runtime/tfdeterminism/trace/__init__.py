"""The debug tool: records digests of what a program computes, and names the first op that differs.

    with tfdeterminism.trace.record("A"):
        train()

    model.fit(..., callbacks=[tfdeterminism.trace.callback("A")])

Functions that TensorFlow traced before recording began have no probes: start recording before their first call.
Importing this package imports neither TensorFlow nor NumPy.
"""

__all__ = ["callback", "record", "step"]


def record(out, level="ops", steps=None, capture=None, xla=None, values=None):
    """Return a context manager that records the ops inside into a new file in the folder `out`.

    level: "none" (digest of the final weights alone), "weights", "layers", "unordered" (only the ops whose order the
    graphs leave open) or "ops"; steps: (first, end) or None; capture: an op whose inputs are stored, see
    capture/input_capture.py; xla: False never lets XLA compile, None lets it only at level "none", because what XLA
    compiled has no ops to record; values: list of outputs whose values are stored, with those of losses and weights,
    see capture/value_recorder.py. Raises UsageError.
    """
    from .capture.recording import Recording
    return Recording(out, level, steps, capture, xla, values)


def step():
    """Mark the end of a training step. Without a call, steps end where the optimizer updates its variables."""
    from .capture.recording import end_step_everywhere
    end_step_everywhere()


def callback(out, level="ops", steps=None):
    """Return a Keras callback that records `fit` into the folder `out`. level, steps: as for record."""
    from .capture.tensorflow.callback import make
    return make(out, level, steps)
