"""The replacement of functions in TensorFlow's modules, and their restoration.

TensorFlow exports one function object under many names: `tf.math.segment_sum`, `tf.compat.v1.segment_sum`,
`math_ops.segment_sum`. So references to it are found by identity.
"""

import functools
import inspect
import sys

_FRAMEWORK_PACKAGES = ("tensorflow", "keras", "tf_keras")
_WRAPPED_MODULE_ATTRIBUTES = ("_tfmw_wrapped_module", "_dw_wrapped_module")


class UseOriginalError(Exception):
    """Raised by a replacement to leave a call to the original: it is invalid, or deterministic anyway."""


class Replacements(object):
    """A set of replaced functions that restore() restores together."""

    def __init__(self):
        self._replaced = []  # (module, name, old, new)
        self._replacements = {}  # id(old) -> (old, new)
        self._wrappers = []

    @property
    def replaced_attributes(self):
        """Every replaced attribute: (module name, attribute, old, new)."""
        return [(module.__name__, name, old, new) for module, name, old, new in self._replaced]

    def install(self, patch):
        """Install the replacements of a patch under every name of each op; searches all loaded modules once."""
        earlier_ids = set(self._replacements)
        patch.install(self)
        functions = [old for identity, (old, _) in self._replacements.items() if identity not in earlier_ids]
        for holder, attribute, function in _find_references(functions, _is_framework_module):
            new = self._replacements[id(function)][1]
            setattr(holder, attribute, new)
            self._replaced.append((holder, attribute, function, new))

    def replace(self, module, name, compute):
        """Replace the generated function `module.name` by `compute`; a patch's `install` calls this for each op.

        Replacing a function twice, or one that this version does not have, has no effect.

        Args:
            module: one of TensorFlow's gen_* modules.
            name: of the function.
            compute: called with all arguments of the original by name, defaults included.  If it raises
                UseOriginalError, or an error about its arguments before it has changed anything, the original is
                called, and its error message is raised.
        """
        original = getattr(module, name, None)
        if original is None or id(original) in self._replacements or hasattr(original, "tfdeterminism_original"):
            return
        functions = [original]
        raw_function = getattr(module, _to_camel_case(name), None)
        if inspect.isfunction(raw_function):
            functions.append(raw_function)
        for function in functions:
            self._replacements[id(function)] = (function, _make_replacement(function, compute))

    def note_public_caller(self, function):
        """Note a public function that calls a replaced op: references to it become deterministic, too."""
        if function is not None:
            self._wrappers.append(function)

    def user_references(self):
        """Return references in modules outside of TensorFlow and this package, as "module.name".

        Returns:
            Those that still refer to an original op, and those to a public function that calls a replaced one.
        """
        stale_references = _find_references([old for old, _ in self._replacements.values()], _is_user_module)
        wrapper_references = _find_references(self._wrappers, _is_user_module)
        return sorted(_names(stale_references)), sorted(_names(wrapper_references))

    def restore(self):
        """Restore every original, also in modules that were loaded since and refer to a replacement."""
        for module, name, old, _ in reversed(self._replaced):
            setattr(module, name, old)
        originals = dict((id(new), old) for old, new in self._replacements.values())
        news = [new for _, new in self._replacements.values()]
        for module, name, value in _find_references(news, lambda _: True):
            setattr(module, name, originals[id(value)])
        self._replaced, self._replacements, self._wrappers = [], {}, []


def _make_replacement(original, compute):
    signature = inspect.signature(original)

    @functools.wraps(original)
    def call(*args, **kwargs):
        try:
            bound_arguments = signature.bind(*args, **kwargs)
        except TypeError:
            return original(*args, **kwargs)
        arguments = dict((name, parameter.default) for name, parameter in signature.parameters.items())
        arguments.update(bound_arguments.arguments)
        try:
            return compute(**arguments)
        except UseOriginalError:
            return original(*args, **kwargs)
        except Exception as error:
            if _is_bad_input(error):
                original(*args, **kwargs)  # raises the original's message
            raise

    call.tfdeterminism_original = original  # type: ignore[attr-defined]
    return call


def _is_bad_input(error):
    """Return whether an error is about arguments; in graphs only errors raised while building are."""
    from tensorflow.python.framework import errors
    return isinstance(error, (TypeError, ValueError, errors.InvalidArgumentError))


def _to_camel_case(name):
    """Return the name of an op in tf.raw_ops: UnsortedSegmentSum for unsorted_segment_sum."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _find_references(functions, belongs):
    """Return all module-level references to the functions, [(module, attribute, function)].

    belongs(module name): whether to search a module.
    """
    ids = set(id(function) for function in functions)
    return [(module, name, value)
            for module in _modules() if belongs(module.__name__) and _references_any(module, ids)
            for name, value in list(_contents(module).items())
            if id(value) in ids and inspect.isfunction(value)]


def _references_any(module, ids):
    """Return whether a module has an attribute with one of these ids.

    It is one call in C, because there are 100,000 attributes, and so that no other thread changes the module meanwhile.
    """
    return not ids.isdisjoint(map(id, _contents(module).values()))


def _modules():
    """Yield every loaded module, and the modules that TensorFlow's wrapper modules wrap."""
    visited = set()
    for loaded in list(sys.modules.values()):
        module = loaded  # type: object
        while isinstance(module, type(sys)) and id(module) not in visited:
            visited.add(id(module))
            yield module
            inner = _contents(module)
            module = inner.get(_WRAPPED_MODULE_ATTRIBUTES[0]) or inner.get(_WRAPPED_MODULE_ATTRIBUTES[1])


def _contents(module):
    # Not vars(): TensorFlow's lazy modules load themselves at the access to an attribute.
    return object.__getattribute__(module, "__dict__")


def _is_framework_module(name):
    return name.startswith(_FRAMEWORK_PACKAGES)


def _is_user_module(name):
    return not _is_framework_module(name) and name.split(".")[0] != "tfdeterminism"


def _names(holders):
    return set("%s.%s" % (module.__name__, name) for module, name, _ in holders)
