"""The Keras callback that records a training."""

from ..recording import Recording


def make(out, level, steps):
    """Return the callback. out: folder of the trace; level, steps: what is recorded, as for trace.record()."""
    import tensorflow

    class Trace(tensorflow.keras.callbacks.Callback):
        """Records what happens between the begin and the end of training."""

        def __init__(self):
            super(Trace, self).__init__()
            self._recording = Recording(out, level, steps)

        def on_train_begin(self, logs=None):
            self._recording.start()
            if self._recording.labels is not None:
                self._recording.labels.track_all(self.model.weights)

        def on_train_end(self, logs=None):
            self._recording.stop()

    return Trace()
