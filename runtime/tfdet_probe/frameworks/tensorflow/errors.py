"""The messages of TensorFlow's exceptions, and their kind: raises, unsupported or crashed."""

import re
import traceback

# All errors by which TensorFlow refuses nondeterminism contain this word.
_DETERMINISM = re.compile(r"determinis", re.I)
_OP_NAME = re.compile(r"\w+Deterministic\w*")  # an op's name, such as NonDeterministicInts, means no refusal
_NO_KERNEL = re.compile(
    r"no OpKernel was registered|could not find (valid )?(device|.*kernel)|cannot assign a device"
    r"|could not satisfy|op.*only supports? (the )?NHWC|only supports NHWC|not supported on (the )?CPU"
    r"|NHWC tensor format|format.*not supported|not implemented|not support.*NCHW|no registered '"
    r"|(module 'tensorflow\S*'|type object '\w+'|'\S*(tensorflow|Tensor|Dataset|Tape|Variable)\S*' object)"
    r" has no attribute"
    r"|cannot import name|No module named"
    r"|algorithm.*unimplemented|do(es)? not (yet |currently )?support|(is|are) not (yet |currently )?supported"
    r"|cannot set the property", re.I)
_NO_KERNEL_TYPES = ("NotFoundError", "InvalidArgumentError", "UnimplementedError", "InternalError", "AttributeError",
                    "ImportError", "ModuleNotFoundError", "NotImplementedError", "TypeError", "ValueError")


# TensorFlow puts stack traces, with lines of source code, around and after its messages.
_STACK = re.compile(r"\n(Original stack trace for|Errors may have originated)")
_IN_FUNCTION = re.compile(r"^in (user|converted) code:.*\n\s*[\w.]*(Error|Exception): ", re.S)
_FRAME = re.compile(r'^( *)File "[^\n]*\n(?:\1 +[^\n]*\n)*', re.M)
_AROUND = re.compile(r"\s*$|\s+\[\[|Graph execution error:|Detected at node|<stack traces|Node: |in user code:")


def error_text(error):
    """The message of an exception without stack traces, whose paths and code would confuse classify()."""
    text = _STACK.split(_IN_FUNCTION.sub("", str(error)))[0]
    lines = [line.strip() for line in _FRAME.sub("", text + "\n").splitlines() if not _AROUND.match(line)]
    return "\n".join(lines) or text


# How a message names the failed op: by its type if it ran eagerly, otherwise by its node in the graph.
_EAGER_OP = re.compile(r"\[Op:(\w+)\]")
_GRADIENT_NODE = re.compile(r"\{?\{?node '?(?:gradients|gradient_tape)/(?:[\w.\-]+/)*(\w+)")


def refused_by_gradient(error, ops):
    """The op of `ops` that rejected arguments from TensorFlow's own gradient function, or None.

    The case did not write those arguments, so the kernel lacks this form, even if its message does not say so.
    """
    if type(error).__name__ != "InvalidArgumentError":
        return None
    text = str(error)
    named = _GRADIENT_NODE.search(text) or (_EAGER_OP.search(text) if _in_gradient(error) else None)
    op = re.sub(r"_\d+$", "", named.group(1)) if named else ""
    return op if any(re.match("({})$".format(pattern), op) for pattern in ops) else None


def _in_gradient(error):
    return any(frame[0].endswith("imperative_grad.py") for frame in traceback.extract_tb(error.__traceback__))


def classify(error):
    """See core.error_report.classify."""
    name, message = type(error).__name__, error_text(error)
    if name in ("UnimplementedError", "RuntimeError", "InvalidArgumentError", "FailedPreconditionError") \
            and _DETERMINISM.search(_OP_NAME.sub("", message)):
        return "raises"
    if name in _NO_KERNEL_TYPES and _NO_KERNEL.search(message):
        return "unsupported"
    return "crashed"
