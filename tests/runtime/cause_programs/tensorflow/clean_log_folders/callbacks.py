import time

import keras


class Timer(keras.callbacks.Callback):
    total = 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self.begun = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.total += time.perf_counter() - self.begun
