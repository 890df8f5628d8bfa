"""The exception for errors that are shown to the user, and units of bytes."""

MIB, GIB = 1 << 20, 1 << 30


class BundleError(Exception):
    """An expected error: a line of cause, a line of advice, an exit code."""

    def __init__(self, code, cause, advice):
        Exception.__init__(self, cause)
        self.code, self.cause, self.advice = code, cause, advice
