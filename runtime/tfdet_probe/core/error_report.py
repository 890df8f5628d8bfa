"""An error as a record states it: its kind, its type, its message and its line."""

import os
import traceback
from typing import TYPE_CHECKING

from ..base.errors import UnsupportedError

if TYPE_CHECKING:  # for type comments alone
    from typing import Any  # noqa: F401

    from ..devices.base import Device  # noqa: F401
    from ..frameworks.base import Framework  # noqa: F401


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


def describe_error(framework, error):
    # type: (Framework, BaseException) -> dict[str, str | None]
    """An exception as a record states it: {kind, type, message, where}; where: file:line, or None."""
    lines = framework.error_text(error).strip().splitlines() or [""]
    frames = traceback.extract_tb(error.__traceback__)
    last_frame = frames[-1] if frames else None
    return {"kind": classify(framework, error), "type": recorded_type(error), "message": printable(lines[0])[:400],
            "where": "{}:{}".format(os.path.basename(last_frame[0]), last_frame[1]) if last_frame else None}


def refused_by_device(device, error):
    # type: (Device, dict[str, Any]) -> dict[str, Any]
    """Report a crash as unsupported if the case called what the device does not support."""
    unsupported = device.refusal() if error["kind"] == "crashed" else None
    if not unsupported:
        return error
    message = error["message"] if unsupported in error["message"] else "{}: {}".format(unsupported, error["message"])
    return dict(error, kind="unsupported", message=printable(message)[:400])


def printable(text):
    # type: (str) -> str
    """A text with control characters replaced, which a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in text)
