"""The errors that make a case `unsupported`.

A record names an error by its class.  Signed records hold the names that these classes had before; `recorded_as` keeps
them."""

class UnsupportedError(Exception):
    """The framework cannot run the case on this device in this mode."""

    recorded_as = "Unsupported"  # as the field error.type of a record


class SolutionUnavailableError(UnsupportedError):
    """The framework, or this version of it, does not have the solution's call."""

    recorded_as = "NotHere"


class WrongPlacementError(UnsupportedError):
    """An op of the case did not run, or ran on another device than requested."""

    recorded_as = "WrongPlacement"
