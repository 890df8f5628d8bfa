"""What makes a case `unsupported` under any framework."""


class Unsupported(Exception):
    """This framework cannot run the case as it is asked for here."""


class NotHere(Unsupported):
    """This framework, or this version of it, has no such switch."""


class WrongPlacement(Unsupported):
    """An op of the case was not seen to run, or ran on another device than asked."""


class NoKernel(Unsupported):
    """The framework's own gradient hands an op what its kernel on this device cannot take."""

    def __init__(self, framework, op, error):
        super(NoKernel, self).__init__("no kernel for what {}'s own gradient hands {}: {}: {}".format(
            framework.title, op, type(error).__name__, framework.said(error)))


def classify(framework, error):
    """'raises' (refused for determinism), 'unsupported' (no such op, kernel or switch here) or 'crashed'."""
    return "unsupported" if isinstance(error, Unsupported) else framework.classify(error)
