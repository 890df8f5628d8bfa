"""The frameworks that can be traced: one Backend each, registered by an entry "module:class".

Each backend has a folder, which alone imports the framework. The module of the class imports neither the framework nor
the recorder, because the comparison of traces asks it for advice on machines that may lack the framework.
"""

import importlib
import os

BACKENDS_VARIABLE = "TFDET_TRACE_BACKENDS"  # entries "name=module:class;...", which child processes inherit
_PACKAGE = __name__.rpartition(".")[0] + ".capture."
_ENTRIES = {"tensorflow": _PACKAGE + "tensorflow.backend:TensorFlowBackend",
            "torch": _PACKAGE + "torch.backend:TorchBackend"}
_loaded = {}

# Advice about Python, which is the same in all frameworks. *_LINES: for runs that differ by a value from Python, by
# what the program executes (STRUCTURE), by a file's content, or by the order of values.
SORT_HASHES = ("for item in sorted(items):  # a set has another order in every process; or PYTHONHASHSEED=0 "
               "before Python")
SEED_PYTHON = "random.seed(1); numpy.random.seed(1)  # and numpy.random.default_rng(1) instead of default_rng()"
HOST_VALUE_LINES = ["import random, numpy", SEED_PYTHON, SORT_HASHES]
STRUCTURE_LINES = [
    "# find what decides here, for example a branch on the time, a set's order, a file, a random number or a thread"]
FILE_LINES = ["# begin each run from the same file: what was read differs"]
ORDER_LINES = ["for item in sorted(items):  # go through it in an order that does not change"]


class Backend(object):
    """The interface to a framework. The methods that need the framework import it themselves.

    name: of the module that a program imports; label: name for users; packages: top-level modules whose files and
    threads are not the program's own.
    """

    name = label = ""
    packages = ()  # type: tuple
    uses_matrix = False  # whether advice.json, generated from the project's matrix of sources, covers its ops
    # Its functions that return uninitialized memory, and those that return zeros instead.
    uninitialized_allocators = {}  # type: dict
    # Statements that fix a program: they seed its global generator (with {} for the number), switch to deterministic
    # ops, use one thread.
    seed_lines = switch_lines = thread_lines = ()  # type: tuple

    def install(self, recording):
        """Install the probes in the framework, which has just been imported, and call recording.on_installed()."""
        raise NotImplementedError

    def traits(self, op_type):
        """Return the traits of an op type: a set of names from schema.traits."""
        return frozenset()

    def attributes(self, op_type):
        """Return the attributes that an op's type alone decides: keys of schema.traits.ATTRIBUTES."""
        return {}

    def is_pure(self, op_type):
        """Return whether replay may run this op alone, because it only computes numbers from numbers."""
        return False

    def replay(self, meta, arrays, times):
        """Run one op `times` times and return the digests, a list for each output.

        meta, arrays: the result of replay.load().
        """
        raise NotImplementedError

    def apply_solutions(self, module, names):
        """Apply solutions in this process. module: the framework; names: keys of remedies.AUTOMATIC_FIXES."""

    def interpose(self, kinds, module):
        """Note and pin nondeterministic values that the framework gives to a program.

        kinds: {name: interpose.kinds.Kind}; module: the framework, which has just been imported.
        """

    def advice_lines(self, fault, op_type, on_gpu):
        """Return the advised lines of code. fault: a faults.Fault; op_type: the op that differs."""
        return []

    def solution_of(self, lines):
        """Return the key in remedies.AUTOMATIC_FIXES of the fix that these lines advise, or None."""
        return None

    def matrix_source(self, fault, question):
        """Return the key of the matrix' source of an op, or None. question: a causes.advice.Question."""
        return None


def register(name, entry):
    """Add a framework. name: of its module; entry: "module:class" of its Backend, importable without the framework."""
    registered = os.environ.get(BACKENDS_VARIABLE, "").split(";")
    others = [text for text in registered if text and not text.startswith(name + "=")]
    os.environ[BACKENDS_VARIABLE] = ";".join(others + ["{}={}".format(name, entry)])
    _loaded.pop(name, None)


def entries():
    """Return {name of a framework: entry of its backend}."""
    registered = [text.partition("=") for text in os.environ.get(BACKENDS_VARIABLE, "").split(";") if text]
    return dict(_ENTRIES, **{name: entry for name, _, entry in registered})


def find(name):
    """Return the Backend of a framework; the base class, which knows nothing, for a name without an entry."""
    if name not in entries():
        return Backend()
    if name not in _loaded:
        module, _, class_name = entries()[name].partition(":")
        _loaded[name] = getattr(importlib.import_module(module), class_name)()
    return _loaded[name]


def find_for_header(header):
    """Return the Backend of a trace, by its header."""
    return find(header.get("framework") or "")


def packages():
    """Return the top-level modules of all frameworks."""
    return tuple(package for name in entries() for package in find(name).packages)


def all_uninitialized_allocators(others):
    """Return Backend.uninitialized_allocators of all frameworks, and others, such as NumPy's."""
    return dict(others, **{name: zeros for entry in entries()
                           for name, zeros in find(entry).uninitialized_allocators.items()})


def labels():
    """Return the names of the frameworks for messages: "TensorFlow or PyTorch"."""
    names = [find(name).label for name in entries()]
    return ", ".join(names[:-1]) + " or " + names[-1]
