"""Which lines of the user's program made an op."""

import os
import sys
import sysconfig
from typing import TYPE_CHECKING

from .. import backends

if TYPE_CHECKING:  # for type comments alone
    from types import FrameType  # noqa: F401

DEPTH = 8  # frames kept of a stack

_HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_PACKAGES = backends.packages() + ("numpy", "horovod", "tfdet_probe")
_KNOWN_LIMIT = 1 << 16  # codes and stacks that are known
_known = {}
_folders = {}
_codes = {}   # id of a code: (the code, which keeps its id, is it the user's)
_library_codes = set()  # ids of the codes that are not: asked first
_stacks = {}  # (id of a code, place in it, ...) of the user's frames: what of_caller() gives
_places = {}  # (id of a code, place in it): what place_of_caller() gives


def is_user(path):
    """Is it a file of the user's program, not of Python, TensorFlow, an installed package or ours?"""
    known = _known.get(path)
    if known is None:
        known = _known[path] = not path.startswith(_library_folders()) and not _generated(path)
    return known


def _generated(path):
    return (path.startswith(("<frozen", "<__array_function__")) or "__autograph_generated_file" in path
            or path == "<string>")


def _library_folders():
    """Folders of what is not the program's, by which of the packages have been imported so far."""
    files = tuple(getattr(sys.modules.get(name), "__file__", None) for name in _PACKAGES)
    if files not in _folders:
        folders = [_HERE] + [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
        folders += [os.path.dirname(os.path.abspath(path)) for path in files if path]
        _folders[files] = tuple(folder + os.sep for folder in folders + [os.path.realpath(one) for one in folders])
    return _folders[files]


def stack_of_op(op):
    """[[file, line, function], ...] of the user, innermost first: where a graph op was created."""
    try:
        traceback = op.traceback
        if hasattr(traceback, "get_user_frames"):  # spares us TensorFlow's own, which are most
            found = [(frame.filename, frame.lineno, frame.name) for frame in traceback.get_user_frames()]
        else:
            found = [tuple(frame)[:3] for frame in traceback or ()]
    except Exception:  # an imported graph has no stack; what is raised depends on the version
        return []
    return [list(frame) for frame in reversed(found) if is_user(frame[0])][:DEPTH]


def in_keras():
    """Is it Keras that the user's innermost line has called?"""
    for frame in outer_frames(sys._getframe(1)):
        path = frame.f_code.co_filename
        if is_user(path):
            break
        if {"keras", "tf_keras"} & set(os.path.normpath(path).split(os.sep)):
            return True
    return False


def stack_of_caller():
    """The same for the caller's own stack; not to be changed, as who asks from there again gets the same list."""
    frame = sys._getframe(1)  # type: FrameType | None
    frames, place = [], []
    while frame is not None:  # asked of each op: few calls, and a line's number is long looked for
        code = frame.f_code
        if id(code) not in _library_codes and _is_users(code):
            place += id(code), frame.f_lasti
            frames.append(frame)
            if len(frames) == DEPTH:
                break
        frame = frame.f_back
    found = _stacks.get(tuple(place))
    if found is None:
        found = _stacks[tuple(place)] = [[one.f_code.co_filename, one.f_lineno, one.f_code.co_name] for one in frames]
    return found


def location_of_caller():
    """(file, line) of the user's innermost frame, () for none."""
    frame = sys._getframe(1)  # type: FrameType | None
    while frame is not None:
        code = frame.f_code
        if id(code) not in _library_codes and _is_users(code):
            found = _places.get((id(code), frame.f_lasti))
            if found is None:
                found = _places[id(code), frame.f_lasti] = code.co_filename, frame.f_lineno
            return found
        frame = frame.f_back
    return ()


def _is_users(code):
    found = _codes.get(id(code))
    if found is None:
        if len(_codes) > _KNOWN_LIMIT or len(_stacks) > _KNOWN_LIMIT:
            for known in (_stacks, _places, _library_codes, _codes):  # the last keeps the others' ids
                known.clear()
        found = _codes[id(code)] = code, is_user(code.co_filename)
        if not found[1]:
            _library_codes.add(id(code))
    return found[1]


def outer_frames(frame):
    """The frame, the one that called it, and so on."""
    while frame is not None:
        yield frame
        frame = frame.f_back
