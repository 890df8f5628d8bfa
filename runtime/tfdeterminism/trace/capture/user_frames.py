"""The lines of the user's program that created an op, found in its stack."""

import os
import sys
import sysconfig
from typing import TYPE_CHECKING

from .. import backends

if TYPE_CHECKING:  # for type comments alone
    from types import FrameType  # noqa: F401

DEPTH = 8  # frames kept of a stack

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_PACKAGES = backends.packages() + ("numpy", "horovod", "tfdet_probe")
_KNOWN_LIMIT = 1 << 16  # entries of a cache
_known = {}    # path: result of is_user()
_folders = {}  # files of the imported packages: result of _library_folders()
_codes = {}   # id of a user's code object: the code object, which keeps the id valid
_library_files = set()  # paths of files that are not the user's, for a fast test
_stacks = {}  # (id of a code object, offset in it, ...) of the user's frames: result of stack_of_caller()
_locations = {}  # (id of a code object, offset in it): result of location_of_caller()


def is_user(path):
    """Return whether a file belongs to the user's program, not to Python, a framework, a package or this tool."""
    is_user_file = _known.get(path)
    if is_user_file is None:
        is_user_file = _known[path] = not path.startswith(_library_folders()) and not _is_generated(path)
    return is_user_file


def _is_generated(path):
    return (path.startswith(("<frozen", "<__array_function__")) or "__autograph_generated_file" in path
            or path == "<string>")


def _library_folders():
    """Return the folders of libraries, which depend on the packages that were imported so far."""
    files = tuple(getattr(sys.modules.get(name), "__file__", None) for name in _PACKAGES)
    if files not in _folders:
        folders = [_PACKAGE] + [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
        folders += [os.path.dirname(os.path.abspath(path)) for path in files if path]
        real_folders = [os.path.realpath(folder) for folder in folders]
        _folders[files] = tuple(folder + os.sep for folder in folders + real_folders)
    return _folders[files]


def stack_of_op(op):
    """Return [[file, line, function], ...] of the user, innermost first: where a graph op was created."""
    try:
        traceback = op.traceback
        if hasattr(traceback, "get_user_frames"):  # without TensorFlow's own frames, which are the most
            frames = [(frame.filename, frame.lineno, frame.name) for frame in traceback.get_user_frames()]
        else:
            frames = [tuple(frame)[:3] for frame in traceback or ()]
    except Exception:  # an imported graph has no stack; the type depends on the version
        return []
    return [list(frame) for frame in reversed(frames) if is_user(frame[0])][:DEPTH]


def in_keras():
    """Return whether the user's innermost line called Keras."""
    for frame in outer_frames(sys._getframe(1)):
        path = frame.f_code.co_filename
        if is_user(path):
            break
        if {"keras", "tf_keras"} & set(os.path.normpath(path).split(os.sep)):
            return True
    return False


def stack_of_caller():
    """Return [[file, line, function], ...] of the user, innermost first, in the current stack.

    The list is cached: callers must not change it.
    """
    frame = sys._getframe(1)  # type: FrameType | None
    frames, position = [], []
    while frame is not None:  # this runs for each op: few calls, and no line numbers, which are slow to compute
        code = frame.f_code
        if code.co_filename not in _library_files and _is_user_code(code):
            position += id(code), frame.f_lasti
            frames.append(frame)
            if len(frames) == DEPTH:
                break
        frame = frame.f_back
    stack = _stacks.get(tuple(position))
    if stack is None:
        stack = _stacks[tuple(position)] = [
            [user_frame.f_code.co_filename, user_frame.f_lineno, user_frame.f_code.co_name] for user_frame in frames]
    return stack


def location_of_caller():
    """Return (file, line) of the user's innermost frame, () if there is none."""
    frame = sys._getframe(1)  # type: FrameType | None
    while frame is not None:
        code = frame.f_code
        if code.co_filename not in _library_files and _is_user_code(code):
            location = _locations.get((id(code), frame.f_lasti))
            if location is None:
                location = _locations[id(code), frame.f_lasti] = code.co_filename, frame.f_lineno
            return location
        frame = frame.f_back
    return ()


def _is_user_code(code):
    if id(code) in _codes:
        return True
    if not is_user(code.co_filename):
        _library_files.add(code.co_filename)
        return False
    if len(_codes) > _KNOWN_LIMIT or len(_stacks) > _KNOWN_LIMIT:
        for cache in (_stacks, _locations, _codes):  # _codes last: it keeps the ids valid
            cache.clear()
    _codes[id(code)] = code
    return True


def outer_frames(frame):
    """Yield the frame, its caller, and so on."""
    while frame is not None:
        yield frame
        frame = frame.f_back
