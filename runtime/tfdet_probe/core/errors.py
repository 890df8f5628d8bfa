"""The errors that make a case `unsupported`, and the kind of an error in a record.

A record names an error by its class.  Signed records hold the names that these classes had before; `recorded_as` keeps
them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type comments alone
    from ..frameworks.base import Framework  # noqa: F401


class UnsupportedError(Exception):
    """The framework cannot run the case on this device in this mode."""

    recorded_as = "Unsupported"  # as the field error.type of a record


class SolutionUnavailableError(UnsupportedError):
    """The framework, or this version of it, does not have the solution's call."""

    recorded_as = "NotHere"


class WrongPlacementError(UnsupportedError):
    """An op of the case did not run, or ran on another device than requested."""

    recorded_as = "WrongPlacement"


class NoKernelError(UnsupportedError):
    """The framework's own gradient function calls an op with arguments that its kernel on this device rejects."""

    recorded_as = "NoKernel"

    def __init__(self, framework, op, error):
        # type: (Framework, str, BaseException) -> None
        super(NoKernelError, self).__init__("no kernel for what {}'s own gradient hands {}: {}: {}".format(
            framework.title, op, type(error).__name__, framework.error_text(error)))


def classify(framework, error):
    # type: (Framework, BaseException) -> str
    """The kind of an error, for the field `observation` of a record.

    Returns:
        'raises': the framework refuses to run the op nondeterministically.  'unsupported': the op, kernel or call does
        not exist here.  'crashed': anything else.
    """
    return "unsupported" if isinstance(error, UnsupportedError) else framework.classify(error)


def recorded_type(error):
    # type: (BaseException) -> str
    """The name of an error's type, as records state it."""
    return str(getattr(error, "recorded_as", type(error).__name__))
