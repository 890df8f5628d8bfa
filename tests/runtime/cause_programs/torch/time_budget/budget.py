import time


class Budget:
    def __init__(self, seconds):
        self.seconds = seconds
        self.begun = time.perf_counter()

    def is_spent(self):
        return time.perf_counter() - self.begun > self.seconds
