"""The frameworks that can be traced: one Backend each, registered by an entry "module:class".

A backend lies in a folder of its own, which alone imports the framework. The module with the class imports neither the
framework nor what records: what compares traces asks it for advice, on a machine that need not have the framework.
"""

import importlib
import os

VARIABLE = "TFDET_TRACE_BACKENDS"  # entries of the environment, "name=module:class;...": child processes have them, too
_PACKAGE = __name__.rpartition(".")[0] + ".capture."
_ENTRIES = {"tensorflow": _PACKAGE + "tensorflow.backend:TensorFlowBackend",
            "torch": _PACKAGE + "torch.backend:TorchBackend"}
_loaded = {}

# Advice that is the same in all frameworks, as it is of Python.
SORT_HASHES = ("for item in sorted(items):  # a set has another order in every process; or PYTHONHASHSEED=0 "
               "before Python")
SEED_PYTHON = "random.seed(1); numpy.random.seed(1)  # and numpy.random.default_rng(1) instead of default_rng()"
HOST_VALUE_LINES = ["import random, numpy", SEED_PYTHON, SORT_HASHES]
STRUCTURE_LINES = [
    "# find what decides here, for example a branch on the time, a set's order, a file or a random number"]
FILE_LINES = ["# begin each run from the same file: what was read differs"]
ORDER_LINES = ["for item in sorted(items):  # go through it in an order that does not change"]


class Backend(object):
    """What the tool asks of a framework. The methods that need the framework import it themselves.

    name: of the module that a program imports; label: what its users call it; packages: top-level modules whose files
    and threads are not the program's own.
    """

    name = label = ""
    packages = ()  # type: tuple
    uses_matrix = False  # does advice.json speak of its ops?

    def install(self, recording):
        """Put the probes into the framework, which has just been imported, and call recording.on_installed()."""
        raise NotImplementedError

    def traits(self, op_type):
        """The traits of an op type: a set of words of schema.traits."""
        return frozenset()

    def attributes(self, op_type):
        """The attributes that an op's type alone decides: a dict with keys of schema.traits.ATTRIBUTES."""
        return {}

    def is_pure(self, op_type):
        """May replay run this op alone: does it but compute numbers from numbers?"""
        return False

    def replay(self, meta, arrays, times):
        """Digests that runs of one op gave: a list of `times` for each output. meta, arrays: as replay.load() gives
        them."""
        raise NotImplementedError

    def apply_solutions(self, module, names):
        """Apply solutions in this process. module: the framework; names: keys of remedies.REMEDIES."""

    def interpose(self, kinds, module):
        """Note and pin what the framework gives to a program that another run could get otherwise. kinds: {name:
        interpose.kinds.Kind}; module: the framework, which has just been imported."""

    def advice_lines(self, fault, op_type, on_gpu):
        """The lines of code that are advised. fault: a class of causes.advice; op_type: the op that differs."""
        return []

    def solution_of(self, lines):
        """The key of remedies.REMEDIES that does what these lines advise, or None."""
        return None

    def matrix_source(self, fault, question):
        """The row of the matrix that an op belongs to, or None. question: a causes.advice.Question."""
        return None


def register(name, entry):
    """Add a framework. name: of its module; entry: "module:class" of its Backend, importable without the framework."""
    known = [one for one in os.environ.get(VARIABLE, "").split(";") if one and not one.startswith(name + "=")]
    os.environ[VARIABLE] = ";".join(known + ["{}={}".format(name, entry)])
    _loaded.pop(name, None)


def entries():
    """{name of a framework: entry of its backend}."""
    added = [one.partition("=") for one in os.environ.get(VARIABLE, "").split(";") if one]
    return dict(_ENTRIES, **{name: entry for name, _, entry in added})


def find(name):
    """The Backend of a framework; one that knows nothing for a name without an entry."""
    if name not in entries():
        return Backend()
    if name not in _loaded:
        module, _, kind = entries()[name].partition(":")
        _loaded[name] = getattr(importlib.import_module(module), kind)()
    return _loaded[name]


def find_for_header(header):
    """The Backend of a trace, by its header."""
    return find(header.get("framework") or "")


def packages():
    """The top-level modules of all frameworks."""
    return tuple(one for name in entries() for one in find(name).packages)


def labels():
    """"TensorFlow or PyTorch", for messages."""
    found = [find(name).label for name in entries()]
    return ", ".join(found[:-1]) + " or " + found[-1]
