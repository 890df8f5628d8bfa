import os
import random
import time


class Backoff:
    """Waits a little, and not all processes for the same time."""

    def __init__(self):
        self.generator = random.SystemRandom()

    def wait(self):
        time.sleep(self.generator.uniform(0, 0.002))


def temporary_name():
    return f"out-{os.urandom(4).hex()}.tmp"
