"""A hook that calls a function as soon as a module has been imported, without importing it earlier.

TensorFlow reads environment variables when it is imported: a traced program must be able to set them first, as it does
without the tool.
"""

import importlib.util
import sys


class ImportHook(object):
    """A finder in sys.meta_path from open() to close()."""

    def __init__(self):
        self._hooks = {}
        self._looking = set()

    def open(self):
        sys.meta_path.insert(0, self)

    def add(self, hooks):
        """Add hooks, {module name: function(module)}. Those of loaded modules are called now."""
        for name, function in hooks.items():
            if name in sys.modules:
                function(sys.modules[name])
            else:
                self._hooks.setdefault(name, []).append(function)

    def close(self):
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._hooks.clear()

    def find_spec(self, name, path=None, target=None):
        if name not in self._hooks or name in self._looking:
            return None
        self._looking.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._looking.discard(name)
        loader = getattr(spec, "loader", None)
        if loader is None or not hasattr(loader, "exec_module"):
            return spec
        load = loader.exec_module

        def exec_module(module):
            load(module)
            for function in self._hooks.pop(name, ()):
                function(sys.modules.get(name, module))

        loader.exec_module = exec_module
        return spec
