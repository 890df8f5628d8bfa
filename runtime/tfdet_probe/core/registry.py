"""The cases: the decorator @case, and the hash that makes records of a changed case stale."""

import hashlib
import inspect
import io
import itertools
import re
import string
from typing import TYPE_CHECKING

from . import normalized_source

if TYPE_CHECKING:  # for type comments alone: the host hashes cases without NumPy
    from typing import Callable, Iterable, Iterator, Sequence  # noqa: F401

    from ..base.case_builder import CaseBuilder, Computation  # noqa: F401

# The version of the measuring method, a part of each case's hash.  Increase it if a change of the method changes what a
# record means: every record becomes stale.
HASH_METHOD = 1

HOST_MODE = "host"  # the mode of a case that is plain Python, without tensors

_OWN_GRADIENT = re.compile(r"custom_gradient|RegisterGradient|gradient_override_map")


class CaseFunction(object):
    """One @case function: a family of cases, one for each combination of its parameters and modes.

    Attributes:
        hash: the case hash of its records; None if its text cannot be read.
        own_gradient: whether its source code defines a gradient function.
        pytestmark: pytest's marks above and below @case.
    """

    __test__ = False  # not a test for unittest to call

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
        text = _normalized_text(function)
        self.hash = text and code_hash(text)
        self.own_gradient = _OWN_GRADIENT.search(text or "") is not None

    def __call__(self, *arguments, **named):
        """Call the function; pytest's marks apply to callables only."""
        return self.function(*arguments, **named)

    @property
    def fault(self):
        # type: () -> str | None
        """Why it cannot run, or None.  Not raised by @case: the rest of its module would be lost."""
        message = self._fault_of_definition() or self._fault_of_values()
        return message and "{}: {}".format(self.source, message)

    def _fault_of_definition(self):
        if isinstance(self.function, CaseFunction):
            return "{} has two @case: write a function for each".format(self.__name__)
        container, _, _ = getattr(self.function, "__qualname__", self.__name__).rpartition(".")
        if container and not container.endswith("<locals>"):
            return "{} is a method of {}: write it as a function of the module".format(self.__name__, container)
        if not self.hash:
            return ('{}: write @case("{}", ...) before its def in the module itself, the source as a plain '
                    "string first: the text alone is read for the hash".format(self.__name__, self.source))
        if any(mark.name == "parametrize" for mark in self.pytestmark):
            return "{}: give the values to @case, as in n=[1, 2]: it takes no parametrize".format(self.__name__)
        return None

    def _fault_of_values(self):
        if self.ops and HOST_MODE in (self.modes or ()):
            return "a host case has no ops whose placement could be checked"
        try:
            named_after = source_parameters(self.source)
        except ValueError as error:
            return str(error)
        empty = sorted(name for name in set(self.parameters).union(named_after) if not self.parameters.get(name))
        if empty or self.modes is not None and not self.modes:
            return "no values for {}: no case would run".format(", ".join(empty) or "modes")
        return None

    def sources(self):
        # type: () -> set[str]
        """The sources of its cases; a source named after parameters is spelled out for each of their values."""
        if not source_parameters(self.source):
            return {self.source for _ in self._values()}
        return {self.source.format(**values) for values in self._values()}

    def _values(self):
        """All combinations of its parameters, [{name: value}], in the order of the names."""
        names = sorted(self.parameters)
        return [dict(zip(names, values)) for values in itertools.product(*[self.parameters[name] for name in names])]

    def cases(self, framework_modes):
        # type: (Sequence[str]) -> Iterator[Case]
        """Yields each Case.  framework_modes: the modes of a case that names none, and all it may name but `host`."""
        modes = self.modes or framework_modes
        self._check_modes(modes, framework_modes)
        for values in self._values():
            for mode in modes:
                yield Case(self, values, mode)

    def _check_modes(self, modes, framework_modes):
        if self.fault:
            raise ValueError(self.fault)
        unknown = [mode for mode in modes if mode not in tuple(framework_modes) + (HOST_MODE,)]
        if unknown:
            raise ValueError("{}: unknown modes {}; known: {}".format(
                self.source, unknown, list(framework_modes) + [HOST_MODE]))
        if not self.ops and not self.unplaced and set(modes) - {HOST_MODE}:
            raise ValueError("{}: list the ops that must run, or set unplaced=\"reason\"".format(
                self.source))


def _normalized_text(function):
    """The normalized source of a function below its wrappers; None if it is in no file, or is not a case there."""
    try:
        path = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:
        path = None
    if path is None:
        return None
    with io.open(path, encoding="utf-8") as module:
        normalized = normalized_source.normalize_cases(module.read()).get(function.__name__)
    return normalized and normalized.text


class Case(object):
    """One runnable form of a source: values for its parameters, and a mode."""

    def __init__(self, family, values, mode):
        # type: (CaseFunction, dict[str, object], str) -> None
        self.family = family
        self.values = values
        self.mode = mode
        self.source = family.source.format(**values) if source_parameters(family.source) else family.source
        self.ops = family.ops
        names = sorted(set(values) - set(source_parameters(family.source)))
        self.key = case_key(family.__name__, [values[name] for name in names], mode)
        self.hash = family.hash
        self.own_gradient = family.own_gradient  # whether the case defines a gradient function

    def build(self, make):
        # type: (CaseBuilder) -> Computation
        return self.family.function(make, **self.values)


def source_parameters(source):
    # type: (str) -> list[str]
    """The parameters in a source's name: ['op'] for "some-{op}", which stands for a source for each value of op."""
    return [name for _, name, _, _ in string.Formatter().parse(source) if name]


def case_key(name, values, mode):
    # type: (str, Iterable[object], str) -> str
    """The key of a case: its function's name, its values, its mode.

    Args:
        name: of the function.
        values: of the parameters that are not in the source's name, in the order of their names.
        mode: such as 'eager'.
    """
    return "-".join([name] + [str(value) for value in values] + [mode]).replace("_", "-").lower()


def case(source, ops=(), modes=None, unplaced=None, **parameters):
    # type: (str, Iterable[str], Iterable[str] | None, str | None, Sequence[object]) -> Callable[..., CaseFunction]
    """Register a function as the cases of `source`.

    The function is called as function(make, name=value, ...), where make is a CaseBuilder.  It builds its inputs once
    and returns make.gradient(...), make.forward(...), make.program(...), make.samples(...) or make.host(...).

    Args:
        source: the file name (without .toml) under matrix/sources; may hold a parameter in braces, and then each value
            of it is a source.
        ops: the raw op types that must run, each on the requested device.
        modes: some of the framework's modes, or 'host'; None: all of the framework's.
        unplaced: why there are no ops to check; required without ops, but in mode 'host'.
        parameters: name=[values].

    Returns:
        A decorator; a fault of its arguments is reported when the case would run, see CaseFunction.fault.
    """
    return lambda function: CaseFunction(function, source, ops, modes, unplaced, parameters)


def code_hash(text):
    # type: (str) -> str
    """The hash of a case: the first 16 hex digits of the SHA-256 of HASH_METHOD and its normalized source."""
    return hashlib.sha256("{}\n{}".format(HASH_METHOD, text).encode("utf-8")).hexdigest()[:16]
