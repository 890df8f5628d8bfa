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
    """One @case function: a family of cases, one per combination of its parameters and mode.

    pytestmark: the marks of pytest above and below @case.
    """

    __test__ = False  # unittest would call what it finds in its classes

    def __init__(self, function, source, ops, modes, unplaced, parameters):
        self.function = function
        self.source = source
        self.ops = tuple(ops)
        self.modes = None if modes is None else tuple(modes)
        self.unplaced = unplaced
        self.parameters = {name: list(parameters[name]) if hasattr(parameters[name], "__iter__") else []
                           for name in parameters}
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.pytestmark = list(getattr(function, "pytestmark", ()))
        text = _text(function)
        self.hash = text and code_hash(text)
        self.own_gradient = _OWN_GRADIENT.search(text or "") is not None

    def __call__(self, *arguments, **named):
        """Marks of pytest are taken by what can be called alone."""
        return self.function(*arguments, **named)

    @property
    def fault(self):
        # type: () -> str | None
        """Why it cannot be run.  No error when it is written: the rest of its module would be lost with it."""
        said = self._fault_of_writing() or self._fault_of_values()
        return said and "{}: {}".format(self.source, said)

    def _fault_of_writing(self):
        if isinstance(self.function, CaseFunction):
            return "{} has two @case: write a function for each".format(self.__name__)
        within, _, _ = getattr(self.function, "__qualname__", self.__name__).rpartition(".")
        if within and not within.endswith("<locals>"):
            return "{} is a method of {}: write it as a function of the module".format(self.__name__, within)
        if not self.hash:
            return ('{}: write @case("{}", ...) before its def in the module itself, the source as a plain '
                    "string first: the text alone is read for the hash".format(self.__name__, self.source))
        if any(mark.name == "parametrize" for mark in self.pytestmark):
            return "{}: give the values to @case, as in n=[1, 2]: it takes no parametrize".format(self.__name__)
        return None

    def _fault_of_values(self):
        if self.ops and HOST in (self.modes or ()):
            return "a host case has no ops whose placement could be checked"
        try:
            named_after = fields(self.source)
        except ValueError as error:
            return str(error)
        empty = sorted(name for name in set(self.parameters).union(named_after) if not self.parameters.get(name))
        if empty or self.modes is not None and not self.modes:
            return "no values for {}: no case would run".format(", ".join(empty) or "modes")
        return None

    def sources(self):
        # type: () -> set[str]
        """Of all its cases: those that are named after parameters, spelled out."""
        return {self.source.format(**values) if fields(self.source) else self.source for values in self._values()}

    def _values(self):
        names = sorted(self.parameters)
        return [dict(zip(names, values)) for values in itertools.product(*[self.parameters[name] for name in names])]

    def cases(self, framework_modes):
        # type: (Sequence[str]) -> Iterator[Case]
        """framework_modes: what a case that names none runs in, and all that one may name beside `host`."""
        modes = self.modes or framework_modes
        self._check(modes, framework_modes)
        for values in self._values():
            for mode in modes:
                yield Case(self, values, mode)

    def _check(self, modes, framework_modes):
        if self.fault:
            raise ValueError(self.fault)
        unknown = [mode for mode in modes if mode not in tuple(framework_modes) + (HOST,)]
        if unknown:
            raise ValueError("{}: unknown modes {}; known: {}".format(
                self.source, unknown, list(framework_modes) + [HOST]))
        if not self.ops and not self.unplaced and set(modes) - {HOST}:
            raise ValueError("{}: name the ops that must be seen to run, or say unplaced=why there are none".format(
                self.source))


def _text(function):
    """What meaning.of_cases() says of it, whatever wraps it; None where it stands in no file, or is no case there."""
    try:
        path = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:
        path = None
    if path is None:
        return None
    with io.open(path, encoding="utf-8") as module:
        written = meaning.of_cases(module.read()).get(function.__name__)
    return written and written.text


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
    make.program(...) or make.host(...).  What is wrong is told where it would run, see CaseFunction.fault.
    """
    return lambda function: CaseFunction(function, source, ops, modes, unplaced, parameters)


def code_hash(text):
    # type: (str) -> str
    """SHA-256 (16 hex digits) of what a case's text means, see `meaning`, and of the measuring method."""
    return hashlib.sha256("{}\n{}".format(METHOD, text).encode("utf-8")).hexdigest()[:16]
