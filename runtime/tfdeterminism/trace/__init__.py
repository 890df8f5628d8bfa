"""The debug tool: records digests of what a program computes, and names the first op that differs.

    with tfdeterminism.trace.record("A"):
        train()

    model.fit(..., callbacks=[tfdeterminism.trace.callback("A")])

Functions that were traced before recording began hold no probes: begin before the first call.
Importing this imports no TensorFlow.
"""

from .record import record, step

__all__ = ["callback", "record", "step"]


def callback(out, level="ops", steps=None):
    """A Keras callback that records `fit` into the folder `out`. level, steps: as for record."""
    from .callback import make
    return make(out, level, steps)
