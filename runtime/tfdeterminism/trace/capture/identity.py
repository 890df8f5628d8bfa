"""What a process is called in every run of a program: its rank, or whose child it is and which; never its pid."""

import os
import re
import sys

from ..interpose.variables import rank

_MAIN = "MainProcess"
_SPECIAL = re.compile(r"[^\w.+-]+")


class ProcessIdentity(object):
    """Of this process. The first of a program has no parent.

    parent: its parent's name; base: what the names of multiprocessing's processes are put behind, which are told
    apart among all of one program; above: the parent's rank; role: which of its children it is; process: what it
    is called by multiprocessing if that is only inherited.
    """

    def __init__(self, parent=None, base=None, above=None, role=None, process=_MAIN):
        self.parent = parent
        self._base, self._above, self._role, self._process = base, above, role, process
        self._name = None

    @property
    def name(self):
        """Fixed when it is first asked for: a child learns its rank late."""
        if self._name is None:
            self._name = self._find_name()
        return self._name

    @classmethod
    def with_name(cls, name):
        """Of a process that goes on under the name of another: a program that was put in its place."""
        made = cls(name)
        made._name = name
        return made

    @property
    def is_final(self):
        """Can its name not change any more? A process of multiprocessing may get its rank when it runs already."""
        return self._name is not None or self.parent is None or not self._is_multiprocessings()

    def _find_name(self):
        own = rank()
        if self.parent is None or own != self._above:
            return own
        if self._is_multiprocessings():
            return "{}.{}".format(self._base, _plain(_process_name()))
        return "{}.{}".format(self.parent, self._role or _plain(script_of([sys.argv[0]] if sys.argv else [])))

    def _is_multiprocessings(self):
        return _process_name() != self._process

    def child_arguments(self, role=None):
        """The arguments of a ProcessIdentity of a child of this process."""
        name = self.name
        base = self._base if self.parent is not None and self._is_multiprocessings() else name
        return {"parent": name, "base": base, "above": rank(), "role": role}

    def for_fork(self, number):
        """The ProcessIdentity of a fork of this process, asked in the parent."""
        return ProcessIdentity(process=_process_name(), **self.child_arguments("fork-{}".format(number)))


def script_of(words):
    """Which program a command line runs: a script's name, a module's, or the command's."""
    words = [os.path.basename(os.fsdecode(one)) for one in words]
    scripts = [one[:-3] for one in words if one.endswith(".py")]
    modules = words[words.index("-m") + 1:][:1] if "-m" in words else []
    return _plain((scripts or modules or words[:1] or [""])[0])


def _process_name():
    module = sys.modules.get("multiprocessing.process")
    return module.current_process().name if module is not None else _MAIN


def _plain(name):
    return _SPECIAL.sub("_", name).strip(".") or "python"
