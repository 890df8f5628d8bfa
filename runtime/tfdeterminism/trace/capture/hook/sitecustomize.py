"""The hook that Python processes of a traced program run at their start, first on their PYTHONPATH.

It waits until the process imports a framework, and costs nothing until then. In an interposed program (see the
interpose package) it starts the interposition at once. It must stay readable by old versions of Python. A sitecustomize
of the user's own is run afterwards.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_TRACE = os.path.dirname(os.path.dirname(_HERE))
_ROOT = os.path.normpath(os.path.join(_HERE, *[os.pardir] * 4))  # folder that contains the package tfdeterminism


class _DeferredStart(object):
    """A meta path finder that starts recording when a framework is imported."""

    def find_spec(self, name, path=None, target=None):
        if name not in _frameworks() or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        _start()
        import importlib.util
        return importlib.util.find_spec(name)


def _frameworks():
    """Return the same names as backends.entries(), without importing it."""
    entries = os.environ.get("TFDET_TRACE_BACKENDS", "").split(";")
    return ["tensorflow", "torch"] + [entry.partition("=")[0] for entry in entries]


def _start():
    sys.path.insert(0, _ROOT)
    try:
        from tfdeterminism.trace.capture import child_entry
        child_entry.begin()
    except Exception as error:  # the program goes on untraced
        sys.stderr.write("tfdeterminism.trace: this process is not traced: {}\n".format(error))
    finally:
        sys.path.remove(_ROOT)


def _interpose():
    """Start the interposition before any other import, from its package alone."""
    import importlib
    import importlib.util
    folder = os.path.join(_TRACE, "interpose")
    name = "_tfdet_interpose"
    spec = importlib.util.spec_from_file_location(name, os.path.join(folder, "__init__.py"),
                                                  submodule_search_locations=[folder])
    try:
        module = sys.modules[name] = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        spec.loader.exec_module(module)  # type: ignore[union-attr]
        importlib.import_module(name + ".interposer").begin()
    except Exception as error:  # the program goes on without interposition
        sys.stderr.write("tfdeterminism.trace: this process is not interposed: {!r}\n".format(error))


def _run_user_sitecustomize():
    module = sys.modules.pop(__name__)
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or os.curdir) != _HERE]
    try:
        __import__("sitecustomize")
    except ImportError as error:
        if getattr(error, "name", __name__) != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, module)


if sys.version_info >= (3, 7) and os.environ.get("TFDET_INTERPOSE"):
    _interpose()
if sys.version_info >= (3, 5) and os.environ.get("TFDET_TRACE"):
    sys.meta_path.insert(0, _DeferredStart())
_run_user_sitecustomize()
