"""The cases: what @case collects, and the hash that makes old records stale."""

import hashlib
import inspect
import io
import itertools
import re
import string
from typing import TYPE_CHECKING

from . import meaning

if TYPE_CHECKING:  # for type comments alone: the host hashes cases without NumPy
    from typing import Callable, Iterable, Iterator, Sequence  # noqa: F401

    from .make import Computation, Make  # noqa: F401

# Bump when the way of measuring changes what a record means: every record goes stale.
METHOD = 1

HOST = "host"  # the mode of a case that is plain Python

_OWN_GRADIENT = re.compile(r"custom_gradient|RegisterGradient|gradient_override_map")


class CaseFunction(object):
    """One @case function: a family of cases, one per combination of its parameters and mode."""

    def __init__(self, function, source, ops, modes, unplaced, parameters):
        written = _written_beside(function)
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
        # type: (Sequence[str]) -> Iterator[Case]
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


def _written_beside(function):
    """What meaning.of_cases() says of the file that a function is written in; nothing where there is none."""
    path = inspect.getsourcefile(function)
    if path is None:
        return {}
    with io.open(path, encoding="utf-8") as module:
        return meaning.of_cases(module.read())


class Case(object):
    """One runnable form of a source."""

    def __init__(self, family, values, mode):
        # type: (CaseFunction, dict[str, object], str) -> None
        self.family = family
        self.values = values
        self.mode = mode
        self.source = family.source.format(**values) if fields(family.source) else family.source
        self.ops = family.ops
        left = sorted(set(values) - set(fields(family.source)))
        self.key = case_key(family.__name__, [values[name] for name in left], mode)
        self.hash = family.hash
        self.own_gradient = family.own_gradient  # is a gradient function part of the case?

    def build(self, make):
        # type: (Make) -> Computation
        return self.family.function(make, **self.values)


def fields(source):
    # type: (str) -> list[str]
    """The parameters that a source is named after: `op` of some-{op}.  Each of their values is a source by itself."""
    return [name for _, name, _, _ in string.Formatter().parse(source) if name]


def case_key(name, values, mode):
    # type: (str, Iterable[object], str) -> str
    """values: of the parameters that the source is not named after, in the order of their names."""
    return "-".join([name] + [str(value) for value in values] + [mode]).replace("_", "-").lower()


def case(source, ops=(), modes=None, unplaced=None, **parameters):
    # type: (str, Iterable[str], Iterable[str] | None, str | None, Sequence[object]) -> Callable[..., CaseFunction]
    """Register a function as the cases of `source`.

    source: the file name (without .toml) under matrix/sources; in braces a parameter, where each of its values is one.
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
    # type: (str) -> str
    """SHA-256 (16 hex digits) of what a case's text means, see `meaning`, and of the measuring method."""
    return hashlib.sha256("{}\n{}".format(METHOD, text).encode("utf-8")).hexdigest()[:16]
