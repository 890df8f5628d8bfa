"""What a process is told by its environment, and its Interposer."""

import sys

NAME = "_tfdet_interpose"  # of this package where it interposes
VARIABLE = "TFDET_INTERPOSE"  # JSON: what an interposer.Interposer is told
POSITION = "TFDET_POSITION"  # of a process in the tree of processes, "0", its first child "0.1"
current_interposer = []  # the one of this process, in the package of that name


def current():
    """The interposer.Interposer of this process, or None."""
    module = sys.modules.get(NAME + ".variables")
    found = vars(module)["current_interposer"] if module is not None else None
    return found[0] if found else None
