"""Where in the model something happens, and the names of its parameters."""

import threading
import weakref

import torch


class ModulePaths(object):
    """Follows calls of modules. A model is named by its class, what lies in it as PyTorch does."""

    def __init__(self, recorder, wrappers):
        self._recorder = recorder
        self._local = threading.local()
        self._known = weakref.WeakKeyDictionary()  # root: {id of a module in it: name}
        self._roots = {}                           # name of a class: how many models of it
        self._parameters = {}                      # id: (weak reference, name), as a parameter may outlive its model
        self.on_module_end = None  # called with (path, result) when a module has been called
        wrappers.wrap(torch.nn.Module, "__call__", self._called)

    def current_path(self):
        """The name of the module that is being called, or None."""
        stack = getattr(self._local, "stack", ())
        return stack[-1][1] if stack else None

    def name_of(self, parameter):
        """Of a parameter of a model that was called; None for any other tensor."""
        known = self._parameters.get(id(parameter))
        return known[1] if known is not None and known[0]() is parameter else None

    def _called(self, original, module, *args, **kwargs):
        if not self._recorder.active:
            return original(module, *args, **kwargs)
        stack = getattr(self._local, "stack", ())
        root = stack[0][0] if stack else module
        path = self._inside(root).get(id(module), type(module).__name__)
        self._local.stack = stack + ((module, path),)
        try:
            result = original(module, *args, **kwargs)
        finally:
            self._local.stack = stack
        if self.on_module_end is not None:
            self.on_module_end(path, result)
        return result

    def _inside(self, root):
        names = self._known.get(root)
        if names is None:
            kind = type(root).__name__
            number = self._roots[kind] = self._roots.get(kind, 0) + 1
            own = kind if number == 1 else "{}#{}".format(kind, number - 1)
            names = self._known[root] = {id(one): own + ("." + name if name else "")
                                         for name, one in root.named_modules()}
            for name, parameter in root.named_parameters():
                if self.name_of(parameter) is None:
                    self._parameters[id(parameter)] = weakref.ref(parameter), "{}.{}".format(own, name)
        return names
