"""What a process is told by its environment, and its Interposer."""

import os
import re
import sys

NAME = "_tfdet_interpose"  # of this package where it interposes
VARIABLE = "TFDET_INTERPOSE"  # JSON: what an interposer.Interposer is told
POSITION = "TFDET_POSITION"  # of a process in the tree of processes, "0", its first child "0.1"
PARENT_RANK = "TFDET_PARENT_RANK"  # of the process that started this one
STOP_AFTER = "TFDET_TRACE_STOP_AFTER"  # training steps
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK", "SLURM_PROCID", "RANK")
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


def position():
    """Of this process in the tree of processes: its rank, where its launcher gave it one, as ranks start in any order;
    else what its parent said."""
    own = launched_rank()
    return "rank" + own if own and own != os.environ.get(PARENT_RANK, "") else os.environ.get(POSITION, "0")


def rank():
    """What tells this process from others of the same program: a job name and number, or "0"."""
    return launched_rank() or "0"


def launched_rank():
    """The rank that a launcher gave this process, or "" for none."""
    task = re.search(r'"task"\s*:\s*\{[^}]*\}', os.environ.get("TF_CONFIG", ""))
    if task:
        kind = re.search(r'"type"\s*:\s*"(\w+)"', task.group(0))
        number = re.search(r'"index"\s*:\s*"?(\d+)', task.group(0))
        if kind and number:
            return kind.group(1) + number.group(1)
    found = [os.environ[name] for name in _RANKS if os.environ.get(name, "").isdigit()]
    return found[0] if found else ""
