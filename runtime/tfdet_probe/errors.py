"""What an exception means for a case: raises, unsupported or crashed."""

import re

from .placement import WrongPlacement
from .solutions import NotHere

# TensorFlow's refusals under determinism all say so in words.
_DETERMINISM = re.compile(r"determinis", re.I)
_NO_KERNEL = re.compile(
    r"no OpKernel was registered|could not find (valid )?(device|.*kernel)|cannot assign a device"
    r"|could not satisfy|op.*only supports? (the )?NHWC|only supports NHWC|not supported on (the )?CPU"
    r"|NHWC tensor format|format.*not supported|not implemented|not support.*NCHW|no registered '"
    r"|(module 'tensorflow\S*'|type object '\w+'|'\S*(tensorflow|Tensor|Dataset|Tape|Variable)\S*' object)"
    r" has no attribute"
    r"|cannot import name|No module named"
    r"|algorithm.*unimplemented|do(es)? not (yet )?support|is not supported|cannot set the property", re.I)
_NO_KERNEL_TYPES = ("NotFoundError", "InvalidArgumentError", "UnimplementedError", "InternalError", "AttributeError",
                    "ImportError", "ModuleNotFoundError", "NotImplementedError", "TypeError", "ValueError")


# TensorFlow puts stacks, with lines of source code, around and behind what it says.
_STACK = re.compile(r"\n(Original stack trace for|Errors may have originated)")
_IN_FUNCTION = re.compile(r"^in (user|converted) code:.*\n\s*[\w.]*(Error|Exception|NotHere): ", re.S)
_FRAME = re.compile(r'^( *)File "[^\n]*\n(?:\1 +[^\n]*\n)*', re.M)
_AROUND = re.compile(r"\s*$|\s+\[\[|Graph execution error:|Detected at node|<stack traces|Node: |in user code:")


def said(error):
    """What an exception says, without the stacks: a path or a line of code there is no reason."""
    text = _STACK.split(_IN_FUNCTION.sub("", str(error)))[0]
    lines = [line.strip() for line in _FRAME.sub("", text + "\n").splitlines() if not _AROUND.match(line)]
    return "\n".join(lines) or text


def classify(error):
    """'raises' (refused for determinism), 'unsupported' (no such op, kernel or switch here) or 'crashed'."""
    name, message = type(error).__name__, said(error)
    if isinstance(error, (NotHere, WrongPlacement)):
        return "unsupported"
    if name in ("UnimplementedError", "RuntimeError", "InvalidArgumentError", "FailedPreconditionError") \
            and _DETERMINISM.search(message):
        return "raises"
    if name in _NO_KERNEL_TYPES and _NO_KERNEL.search(message):
        return "unsupported"
    return "crashed"
