"""The error of this script, and the units of its messages."""

MIB, GIB = 1 << 20, 1 << 30


class BundleError(Exception):
    """An expected error: a line of cause, a line of advice, an exit code."""

    def __init__(self, code, cause, advice):
        Exception.__init__(self, cause)
        self.code, self.cause, self.advice = code, cause, advice
