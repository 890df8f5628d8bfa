"""A framework of nothing: the planted cases of mode `host` need none, and it sees no device but the processor."""

from tfdet_probe.frameworks.base import Framework


class Adapter(Framework):
    name, title = "bare", "Bare"
    modes = ("eager",)

    def started(self):
        return False

    def describe(self):
        return {"version": "0.0"}

    def visible(self, placement):
        return []

    def classify(self, error):
        return "crashed"
