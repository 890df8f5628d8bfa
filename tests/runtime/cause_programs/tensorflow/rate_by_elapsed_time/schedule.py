import time


class CoolDown:
    """Lowers the rate during the time that a job may take."""

    def __init__(self, optimizer, start, seconds):
        self.optimizer, self.start, self.seconds = optimizer, start, seconds
        self.begun = time.monotonic()

    def update(self):
        share = min(1.0, (time.monotonic() - self.begun) / self.seconds)
        self.optimizer.learning_rate = self.start * (1 - share)
