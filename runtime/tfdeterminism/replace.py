"""Put functions of TensorFlow's own modules aside and back again.

TensorFlow exports one function under many names: `tf.math.segment_sum`, `tf.compat.v1.segment_sum`,
`math_ops.segment_sum`.  All of them are one object, so it is looked for by identity.
"""

import functools
import inspect
import sys

_FAMILY = ("tensorflow", "keras", "tf_keras")
_WRAPPED = ("_tfmw_wrapped_module", "_dw_wrapped_module")


class NotCovered(Exception):
    """A replacement's way to say: this call is the original's (it raises, or needs no care)."""


class Replacements(object):
    """Everything that was replaced, so that all of it can be put back."""

    def __init__(self):
        self._places = []  # (module, name, old, new)
        self._new = {}  # id(old) -> (old, new)
        self._reached = []

    @property
    def places(self):
        """Every replaced attribute: (module name, attribute, old, new)."""
        return [(module.__name__, name, old, new) for module, name, old, new in self._places]

    def install(self, patch):
        """Put the ops of a patch in place, under every name they have.  One look at all modules, which takes long."""
        before = set(self._new)
        patch.install(self)
        functions = [old for number, (old, _) in self._new.items() if number not in before]
        for holder, attribute, function in _holders(functions, _is_family):
            new = self._new[id(function)][1]
            setattr(holder, attribute, new)
            self._places.append((holder, attribute, function, new))

    def replace(self, module, name, compute):
        """Let `compute` do what the generated function `module.name` did: a patch's `install` says this of each op.

        compute(**arguments) gets the original's arguments, defaults filled in; NotCovered leaves the call to the
        original, and so does an error about them, whose message is then the original's: it must come before anything
        is changed.  Replacing twice, or what this version does not have, changes nothing.
        """
        old = getattr(module, name, None)
        if old is None or id(old) in self._new or hasattr(old, "tfdeterminism_original"):
            return
        functions = [old]
        raw = getattr(module, _camel(name), None)
        if inspect.isfunction(raw):
            functions.append(raw)
        for function in functions:
            self._new[id(function)] = (function, _standing_in(function, compute))

    def reaches(self, function):
        """Say that a public function is repaired below its own name: references to it need not be replaced."""
        if function is not None:
            self._reached.append(function)

    def user_references(self):
        """What other people's modules hold, as "module.name": (taken before the patch and still the original op,
        held but repaired all the same because the repair is below the name)."""
        stale = _holders([old for old, _ in self._new.values()], _is_theirs)
        reached = _holders(self._reached, _is_theirs)
        return sorted(_names(stale)), sorted(_names(reached))

    def restore(self):
        """Put every original back, also where a module loaded since then took the replacement."""
        for module, name, old, _ in reversed(self._places):
            setattr(module, name, old)
        originals = dict((id(new), old) for old, new in self._new.values())
        news = [new for _, new in self._new.values()]
        for module, name, value in _holders(news, lambda _: True):
            setattr(module, name, originals[id(value)])
        self._places, self._new, self._reached = [], {}, []


def _standing_in(original, compute):
    signature = inspect.signature(original)

    @functools.wraps(original)
    def call(*args, **kwargs):
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return original(*args, **kwargs)
        arguments = dict((name, given.default) for name, given in signature.parameters.items())
        arguments.update(bound.arguments)
        try:
            return compute(**arguments)
        except NotCovered:
            return original(*args, **kwargs)
        except Exception as error:
            if _is_bad_input(error):
                original(*args, **kwargs)  # the original's own words
            raise

    call.tfdeterminism_original = original  # type: ignore[attr-defined]
    return call


def _is_bad_input(error):
    """Told by a function while it runs: in graphs only what is seen as they are built."""
    from tensorflow.python.framework import errors
    return isinstance(error, (TypeError, ValueError, errors.InvalidArgumentError))


def _camel(name):
    """unsorted_segment_sum -> UnsortedSegmentSum: what tf.raw_ops calls it."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _holders(functions, belongs):
    """(module, attribute, function) for every module-level reference to one of the functions."""
    wanted = set(id(function) for function in functions)
    return [(module, name, value)
            for module in _modules() if belongs(module.__name__) and _holds(module, wanted)
            for name, value in list(_contents(module).items())
            if id(value) in wanted and inspect.isfunction(value)]


def _holds(module, wanted):
    """Whether an attribute has one of these ids.  Hardly any module does, and it is asked of 100,000 attributes.

    In one call of C, during which no other thread changes the module.
    """
    return not wanted.isdisjoint(map(id, _contents(module).values()))


def _modules():
    """Every loaded module, and behind TensorFlow's wrapping modules the wrapped ones."""
    seen = set()
    for loaded in list(sys.modules.values()):
        module = loaded  # type: object
        while isinstance(module, type(sys)) and id(module) not in seen:
            seen.add(id(module))
            yield module
            inner = _contents(module)
            module = inner.get(_WRAPPED[0]) or inner.get(_WRAPPED[1])


def _contents(module):
    # Not vars(): TensorFlow's lazy modules load themselves when asked for an attribute.
    return object.__getattribute__(module, "__dict__")


def _is_family(name):
    return name.startswith(_FAMILY)


def _is_theirs(name):
    return not _is_family(name) and name.split(".")[0] != "tfdeterminism"


def _names(holders):
    return set("%s.%s" % (module.__name__, name) for module, name, _ in holders)
