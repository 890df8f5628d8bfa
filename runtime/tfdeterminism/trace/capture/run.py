"""python -m tfdeterminism.trace run: the user's unchanged program, with probes.

What the program prints and its exit code stay its own. A program that ends with 0 though its trace
is of no use makes us end with a code of ours: see the errors module.
"""

import atexit
import importlib.util
import io
import os
import sys
import tokenize
import types

from .. import errors, usage
from . import inputs
from .recording import Recording


def main(argv):
    try:
        arguments = usage.run(argv)
        program = _Module(arguments.arguments) if arguments.program == "-m" \
            else _Script(arguments.program, arguments.arguments)
        recording = Recording(arguments.out, arguments.level, arguments.steps,
                              arguments.capture and inputs.parse(arguments.capture), arguments.xla)
        recording.start()
    except errors.BadUsage as error:
        errors.say(str(error))
        return errors.USAGE
    return _execute(program, recording)


class _Script(object):
    """`python PATH ARGUMENTS`. As the module below: what a program is; BadUsage where there is none."""

    spec = None

    def __init__(self, path, arguments):
        self.code = _compiled(path)
        self.file = os.path.abspath(path) if sys.version_info >= (3, 9) else path  # as Python's own
        self.argv = [path] + arguments
        self.imports_from = os.path.dirname(os.path.realpath(path))


class _Module(object):
    """`python -m MODULE ARGUMENTS`."""

    def __init__(self, arguments):
        if not arguments:
            raise errors.BadUsage("-m names no module", "-- -m PACKAGE.MODULE ARGUMENTS")
        sys.path[0] = self.imports_from = os.getcwd()
        try:
            spec = importlib.util.find_spec(arguments[0])
            if spec is not None and spec.submodule_search_locations is not None:
                spec = importlib.util.find_spec(arguments[0] + ".__main__")
            self.code = spec and spec.loader.get_code(spec.name)
        except (ImportError, AttributeError, ValueError, SyntaxError) as error:
            raise errors.BadUsage("{}: {}".format(arguments[0], error), "run it without tracing first")
        if self.code is None:
            raise errors.BadUsage("there is no module {} to run".format(arguments[0]), "name the program after --")
        self.spec, self.file = spec, spec.origin
        self.argv = [spec.origin] + arguments[1:]


def _execute(program, recording):
    """Run it as Python would; the exit code."""
    module = types.ModuleType("__main__")
    module.__file__ = program.file
    module.__builtins__ = __builtins__
    module.__annotations__ = {}
    if program.spec is not None:
        module.__spec__, module.__package__ = program.spec, program.spec.parent
        module.__loader__ = program.spec.loader
    sys.modules["__main__"] = module
    sys.argv[:] = program.argv
    sys.path[0] = program.imports_from
    end = _End(recording)
    atexit.register(end)  # after what the program registers, and after its threads
    try:
        exec(program.code, module.__dict__)
    except SystemExit as stop:
        end.clean = True
        end.status = _status(stop.code)
        if end.status:
            raise
    except BaseException as error:
        end.clean, end.status = False, 130 if isinstance(error, KeyboardInterrupt) else 1
        sys.excepthook(type(error), error, _without_us(error.__traceback__))
        return end.status
    complaint = recording.complaint()
    if complaint:
        code, text = complaint
        if text:
            errors.say(text)
        return code
    return 0


def _without_us(traceback):
    """The stack as the program alone would have had it."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(here):
        traceback = traceback.tb_next
    return traceback


class _End(object):
    """Ends the trace when the process ends."""

    def __init__(self, recording):
        self._recording = recording
        self.clean = True
        self.status = 0

    def __call__(self):
        try:
            self._recording.stop(self.clean, self.status)
        except errors.BadUsage as error:
            errors.say(str(error))


def _status(code):
    return 0 if code is None else code if isinstance(code, int) else 1


def _compiled(path):
    if os.path.isdir(path):
        path = os.path.join(path, "__main__.py")
    try:
        with io.open(path, "rb") as source:
            encoding = tokenize.detect_encoding(source.readline)[0]
            source.seek(0)
            text = io.TextIOWrapper(source, encoding).read()
        return compile(text, path, "exec", dont_inherit=True)
    except (IOError, OSError) as error:
        raise errors.BadUsage("{}: {}".format(path, error.strerror), "name the program after --")
    except (SyntaxError, ValueError) as error:
        raise errors.BadUsage("{} is no Python program: {}".format(path, error), "run it without tracing first")
