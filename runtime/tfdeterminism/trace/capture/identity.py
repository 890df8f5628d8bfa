"""The name of a process, the same in every run of a program: its rank, or its parent and its role, never its pid."""

import os
import re
import sys

from ..interpose.variables import rank

_MAIN = "MainProcess"
_SPECIAL = re.compile(r"[^\w.+-]+")


class ProcessIdentity(object):
    """The identity of this process. The first process of a program has no parent.

    parent: name of the parent; base: prefix of the names of multiprocessing's processes, which are unique in a
    program; above: rank of the parent; role: which child of the parent it is; process: the name in multiprocessing that
    it inherits; a process with another name was started by multiprocessing.
    """

    def __init__(self, parent=None, base=None, above=None, role=None, process=_MAIN):
        self.parent = parent
        self._base, self._above, self._role, self._process = base, above, role, process
        self._name = None

    @property
    def name(self):
        """The name, which is fixed at its first use: a child may get its rank late."""
        if self._name is None:
            self._name = self._find_name()
        return self._name

    @classmethod
    def with_name(cls, name):
        """Return the identity of a program that replaced another in the same process."""
        identity = cls(name)
        identity._name = name
        return identity

    @property
    def is_final(self):
        """Whether the name is fixed. A process of multiprocessing may get its rank after its start."""
        return self._name is not None or self.parent is None or not self._is_multiprocessing_child()

    def _find_name(self):
        own_rank = rank()
        if self.parent is None or own_rank != self._above:
            return own_rank
        if self._is_multiprocessing_child():
            return "{}.{}".format(self._base, _to_file_name(_process_name()))
        return "{}.{}".format(self.parent, self._role or _to_file_name(script_of([sys.argv[0]] if sys.argv else [])))

    def _is_multiprocessing_child(self):
        return _process_name() != self._process

    def child_arguments(self, role=None):
        """Return the arguments of a ProcessIdentity for a child of this process."""
        name = self.name
        base = self._base if self.parent is not None and self._is_multiprocessing_child() else name
        return {"parent": name, "base": base, "above": rank(), "role": role}

    def for_fork(self, number):
        """Return the ProcessIdentity of a fork of this process; called in the parent."""
        return ProcessIdentity(process=_process_name(), **self.child_arguments("fork-{}".format(number)))


def script_of(arguments):
    """Return the name of the program of a command line: of a script, of a module, or of the command."""
    arguments = [os.path.basename(os.fsdecode(argument)) for argument in arguments]
    scripts = [argument[:-3] for argument in arguments if argument.endswith(".py")]
    modules = arguments[arguments.index("-m") + 1:][:1] if "-m" in arguments else []
    return _to_file_name((scripts or modules or arguments[:1] or [""])[0])


def _process_name():
    module = sys.modules.get("multiprocessing.process")
    return module.current_process().name if module is not None else _MAIN


def _to_file_name(name):
    return _SPECIAL.sub("_", name).strip(".") or "python"
