from datetime import datetime


class Experiment:
    def __init__(self, name, seed=None):
        self.name = name
        self.begun = datetime.now()
        self.seed = seed if seed is not None else int(self.begun.strftime("%H%M%S%f")) % 2**31

    def describe(self):
        return f"{self.name} began {self.begun:%H:%M}"
