"""What a process is told by its environment, and its Interposer."""

import os
import sys

NAME = "_tfdet_interpose"  # of this package where it interposes
VARIABLE = "TFDET_INTERPOSE"  # JSON: what an interposer.Interposer is told
POSITION = "TFDET_POSITION"  # of a process in the tree of processes, "0", its first child "0.1"
STOP_AFTER = "TFDET_TRACE_STOP_AFTER"  # training steps
_HOOK = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "capture", "hook")
current_interposer = []  # the one of this process, in the package of that name


def current():
    """The interposer.Interposer of this process, or None."""
    module = sys.modules.get(NAME + ".variables")
    found = vars(module)["current_interposer"] if module is not None else None
    return found[0] if found else None


def hooked_path(path):
    """A PYTHONPATH on which the hook comes first. path: as it would be without."""
    rest = [one for one in path.split(os.pathsep) if one not in ("", _HOOK)]
    return os.pathsep.join([_HOOK] + rest)


def steps_allowed():
    """After how many training steps a program is ended; None for any number."""
    text = os.environ.get(STOP_AFTER, "")
    return int(text) if text.isdigit() else None
