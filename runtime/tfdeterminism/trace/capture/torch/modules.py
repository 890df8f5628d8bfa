"""The path of the module that is being called, and the names of parameters."""

import threading
import weakref

import torch


class ModulePaths(object):
    """The calls of modules. A model is named after its class, and its submodules as PyTorch names them."""

    def __init__(self, recorder, wrappers):
        self._recorder = recorder
        self._local = threading.local()
        self._known = weakref.WeakKeyDictionary()  # {root: {id of a module in it: name}}
        self._roots = {}                           # {name of a class: number of its models}
        self._parameters = {}                      # {id: (weak reference, name)}; a parameter may outlive its model
        self.on_module_end = None  # called with (path, result) when a module has been called
        wrappers.wrap(torch.nn.Module, "__call__", self._on_call)

    def current_path(self):
        """Return the name of the module that is being called, or None."""
        stack = getattr(self._local, "stack", ())
        return stack[-1][1] if stack else None

    def name_of(self, parameter):
        """Return the name of a parameter of a model that was called; None for any other tensor."""
        entry = self._parameters.get(id(parameter))
        return entry[1] if entry is not None and entry[0]() is parameter else None

    def _on_call(self, original, module, *args, **kwargs):
        if not self._recorder.active:
            return original(module, *args, **kwargs)
        stack = getattr(self._local, "stack", ())
        root = stack[0][0] if stack else module
        path = self._names_in(root).get(id(module), type(module).__name__)
        self._local.stack = stack + ((module, path),)
        try:
            result = original(module, *args, **kwargs)
        finally:
            self._local.stack = stack
        if self.on_module_end is not None:
            self.on_module_end(path, result)
        return result

    def _names_in(self, root):
        names = self._known.get(root)
        if names is None:
            kind = type(root).__name__
            number = self._roots[kind] = self._roots.get(kind, 0) + 1
            root_name = kind if number == 1 else "{}#{}".format(kind, number - 1)
            names = self._known[root] = {id(module): root_name + ("." + name if name else "")
                                         for name, module in root.named_modules()}
            for name, parameter in root.named_parameters():
                if self.name_of(parameter) is None:
                    self._parameters[id(parameter)] = weakref.ref(parameter), "{}.{}".format(root_name, name)
        return names
