"""The cases: what @case collects, and the hash that makes old records stale."""

import hashlib
import inspect
import io
import itertools
import re

from . import meaning

# Bump when the way of measuring changes what a record means: every record goes stale.
METHOD = 1

HOST = "host"  # the mode of a case that is plain Python

_OWN_GRADIENT = re.compile(r"custom_gradient|RegisterGradient|gradient_override_map")


class CaseFunction(object):
    """One @case function: a family of cases, one per combination of its parameters and mode."""

    def __init__(self, function, source, ops, modes, unplaced, parameters):
        with io.open(inspect.getsourcefile(function), encoding="utf-8") as module:
            written = meaning.of_cases(module.read())
        if function.__name__ not in written:
            raise ValueError('{}: write @case("{}", ...) before its def in the module itself, the source as a plain '
                             "string first: the text alone is read for the hash".format(function.__name__, source))
        self.function = function
        self.source = source
        self.ops = tuple(ops)
        self.modes = modes and tuple(modes)
        self.unplaced = unplaced
        self.parameters = parameters
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        text = written[function.__name__].text
        self.hash = code_hash(text)
        self.own_gradient = _OWN_GRADIENT.search(text) is not None

    def cases(self, framework_modes):
        """framework_modes: what a case that names none runs in, and all that one may name beside `host`."""
        modes = self.modes or framework_modes
        self._check(modes, framework_modes)
        names = sorted(self.parameters)
        for values in itertools.product(*[self.parameters[name] for name in names]):
            for mode in modes:
                yield Case(self, dict(zip(names, values)), mode)

    def _check(self, modes, framework_modes):
        unknown = [mode for mode in modes if mode not in tuple(framework_modes) + (HOST,)]
        if unknown:
            raise ValueError("{}: unknown modes {}; known: {}".format(
                self.source, unknown, list(framework_modes) + [HOST]))
        if not self.ops and not self.unplaced and set(modes) - {HOST}:
            raise ValueError("{}: name the ops that must be seen to run, or say unplaced=why there are none".format(
                self.source))


class Case(object):
    """One runnable form of a source."""

    def __init__(self, family, values, mode):
        self.family = family
        self.values = values
        self.mode = mode
        self.source = family.source
        self.ops = family.ops
        self.key = case_key(family.__name__, [values[name] for name in sorted(values)], mode)
        self.hash = family.hash
        self.own_gradient = family.own_gradient  # is a gradient function part of the case?

    def build(self, make):
        return self.family.function(make, **self.values)


def case_key(name, values, mode):
    """values: of the parameters, in the order of their names."""
    return "-".join([name] + [str(value) for value in values] + [mode]).replace("_", "-").lower()


def case(source, ops=(), modes=None, unplaced=None, **parameters):
    """Register a function as the cases of `source`.

    source: the file name (without .toml) under matrix/sources.
    ops: raw op types that must be seen to run, each on the asked device.
    modes: of the framework's own and host; none named: all of the framework's.
    unplaced: why there are no ops to look for; without ops a case in a tensor mode needs such a reason.
    parameters: name=[values]; the function is called as function(make, name=value, ...).
    The function builds its inputs once and returns make.gradient(...), make.forward(...),
    make.program(...) or make.host(...).
    """
    if ops and HOST in (modes or ()):
        raise ValueError("{}: a host case has no ops whose placement could be checked".format(source))
    empty = sorted(name for name in parameters if not parameters[name])
    if empty or modes is not None and not modes:
        raise ValueError("{}: no values for {}: no case would run".format(source, ", ".join(empty) or "modes"))
    return lambda function: CaseFunction(function, source, ops, modes, unplaced, parameters)


def code_hash(text):
    """SHA-256 (16 hex digits) of what a case's text means, see `meaning`, and of the measuring method."""
    return hashlib.sha256("{}\n{}".format(METHOD, text).encode("utf-8")).hexdigest()[:16]
