"""The command that runs the user's unchanged program with probes: python -m tfdeterminism.trace run.

The output and the exit code of the program stay its own. If it ends with 0 but its trace is incomplete or empty, the
exit code is one of errors.py.
"""

import atexit
import importlib.util
import io
import os
import sys
import tokenize
import types

from .. import command_line, errors, untrusted
from ..interpose import variables
from . import apply_fixes, input_capture, value_recorder
from .recording import Recording


def main(argv):
    try:
        arguments = command_line.run(argv)
        program = _ModuleProgram(arguments.arguments) if arguments.program == "-m" \
            else _ScriptProgram(arguments.program, arguments.arguments)
        recording = Recording(arguments.out, arguments.level, arguments.steps,
                              arguments.capture and input_capture.parse(arguments.capture), arguments.xla,
                              value_recorder.parse(arguments.values) if arguments.values is not None else None,
                              with_children=True, apply=arguments.apply)
        sys.argv[:] = program.argv  # before the trace begins, whose header contains them
        recording.start()
        apply_fixes.apply(arguments.apply)
    except errors.UsageError as error:
        errors.log(str(error))
        return errors.EXIT_USAGE
    return _execute(program, recording)


class _ScriptProgram(object):
    """The program of `python PATH ARGUMENTS`. Raises UsageError if it cannot be read or compiled."""

    spec = None

    def __init__(self, path, arguments):
        self.code = _compile_script(path)
        self.file = os.path.abspath(path) if sys.version_info >= (3, 9) else path  # as Python's own
        self.argv = [path] + arguments
        self.imports_from = os.path.dirname(os.path.realpath(path))


class _ModuleProgram(object):
    """The program of `python -m MODULE ARGUMENTS`. Raises UsageError if it cannot be found."""

    def __init__(self, arguments):
        if not arguments:
            raise errors.UsageError("-m names no module", "-- -m PACKAGE.MODULE ARGUMENTS")
        sys.path[0] = self.imports_from = os.getcwd()
        try:
            spec, self.code = _find_module(arguments[0])
        except (ImportError, AttributeError, ValueError, SyntaxError) as error:
            raise errors.UsageError("{}: {}".format(arguments[0], error), "run it without tracing first")
        if self.code is None:
            raise errors.UsageError("there is no module {} to run".format(arguments[0]), "name the program after --")
        self.spec, self.file = spec, spec.origin
        self.argv = [spec.origin] + arguments[1:]


def _find_module(name):
    """Return (spec, code) of what `-m NAME` runs, None for each that does not exist."""
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(name + ".__main__")
    loader = getattr(spec, "loader", None)
    if spec is None or loader is None:
        return spec, None
    return spec, loader.get_code(spec.name)


def _execute(program, recording):
    """Run the program as Python would, and return the exit code."""
    module = types.ModuleType("__main__")
    module.__file__ = program.file
    module.__dict__["__builtins__"] = __builtins__
    module.__annotations__ = {}
    if program.spec is not None:
        module.__spec__, module.__package__ = program.spec, program.spec.parent
        module.__loader__ = program.spec.loader
    sys.modules["__main__"] = module
    sys.path[0] = program.imports_from
    end = _ExitHandler(recording)
    atexit.register(end)  # after what the program registers, and after its threads
    try:
        exec(program.code, module.__dict__)
    except SystemExit as stop:
        end.clean = True
        end.status = _exit_status(stop.code)
        if end.status:
            raise
    except BaseException as error:
        end.clean, end.status = False, 130 if isinstance(error, KeyboardInterrupt) else 1
        _hide_tool_frames(error)
        sys.excepthook(type(error), error, error.__traceback__)
        return end.status
    complaint = recording.problem()  # the trace is incomplete or empty
    if complaint:
        code, text = complaint
        if text:
            errors.log(text)
        return code
    return 0


_MAX_BYTES = 1 << 26  # of a program's text
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_WRAPS = os.path.join(os.path.dirname(_OURS), "wrap.py")


def _hide_tool_frames(error):
    """Remove the frames of this tool from the traceback of an error and of its causes."""
    visited = set()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        error.__traceback__ = _user_traceback(error.__traceback__)
        error = error.__cause__ or error.__context__


def _user_traceback(traceback):
    while traceback is not None and _is_tool_frame(traceback):
        traceback = traceback.tb_next
    entry = traceback
    while entry is not None and sys.version_info >= (3, 7):  # before, the links are fixed
        while entry.tb_next is not None and _is_tool_frame(entry.tb_next):
            entry.tb_next = entry.tb_next.tb_next
        entry = entry.tb_next
    return traceback


def _is_tool_frame(traceback):
    path = traceback.tb_frame.f_code.co_filename
    return path.startswith(_OURS + os.sep) or path == _WRAPS


class _ExitHandler(object):
    """A callable that ends the trace when the process ends."""

    def __init__(self, recording):
        self._recording = recording
        self.clean = True
        self.status = 0

    def __call__(self):
        try:
            self._recording.stop(self.clean, self.status)
        except errors.UsageError as error:
            errors.log(str(error))


def _exit_status(code):
    return 0 if code is None else code if isinstance(code, int) else 1


def _compile_script(path):
    if os.path.isdir(path):
        path = os.path.join(path, "__main__.py")
    try:
        with untrusted.open_regular(path) as source:
            if os.fstat(source.fileno()).st_size > _MAX_BYTES:
                raise ValueError("larger than {} MiB".format(_MAX_BYTES >> 20))
            encoding = tokenize.detect_encoding(source.readline)[0]
            source.seek(0)
            text = io.TextIOWrapper(source, encoding).read()
        interposer = variables.current()
        if interposer is not None:
            return interposer.sets.compile(text, os.path.abspath(path))  # adds calls that order what is iterated
        return compile(text, path, "exec", dont_inherit=True)
    except (IOError, OSError) as error:
        raise errors.UsageError("{}: {}".format(path, error.strerror), "name the program after --")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise errors.UsageError("{} is not a Python program: {}".format(path, error), "run it without tracing first")
