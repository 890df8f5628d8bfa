"""The environment variables that configure the interposition of a process, and its Interposer.

Interposition wraps functions of libraries; it notes what the program gets from them, and may change it.
"""

import os
import re
import sys

NAME = "_tfdet_interpose"  # name under which the hook imports this package
SETTINGS_VARIABLE = "TFDET_INTERPOSE"  # JSON: settings of an interposer.Interposer
POSITION = "TFDET_POSITION"  # of a process in the tree of processes: "0", its first child "0.1"
PARENT_RANK = "TFDET_PARENT_RANK"  # of the process that started this one
STARTED_AT = "TFDET_STARTED_AT"  # the user's line that started this process by subprocess
STOP_AFTER = "TFDET_TRACE_STOP_AFTER"  # training steps
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK", "SLURM_PROCID", "RANK")
# The folder of the sitecustomize.py that starts the interposition in each Python process.
_HOOK = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "capture", "hook")
current_interposer = []  # holds the Interposer of this process, in the package imported as NAME


def current():
    """Return the interposer.Interposer of this process, or None."""
    module = sys.modules.get(NAME + ".variables")
    interposers = vars(module)["current_interposer"] if module is not None else None
    return interposers[0] if interposers else None


def hooked_path(path):
    """Return a PYTHONPATH with the hook first. path: the original one."""
    entries = [entry for entry in path.split(os.pathsep) if entry not in ("", _HOOK)]
    return os.pathsep.join([_HOOK] + entries)


def steps_allowed():
    """Return the number of training steps after which the program is ended; None for no limit."""
    text = os.environ.get(STOP_AFTER, "")
    return int(text) if text.isdigit() else None


def position():
    """Return the position of this process in the tree of processes.

    It is the rank that a launcher gave, because ranks start in any order; else the position that the parent set.
    """
    own_rank = launched_rank()
    is_launched = own_rank and own_rank != os.environ.get(PARENT_RANK, "")
    return "rank" + own_rank if is_launched else os.environ.get(POSITION, "0")


def rank():
    """Return what distinguishes this process from others of the same program: a job name and number, or "0"."""
    return launched_rank() or "0"


def launched_rank():
    """Return the rank that a launcher gave this process, or "" for none."""
    task = re.search(r'"task"\s*:\s*\{[^}]*\}', os.environ.get("TF_CONFIG", ""))
    if task:
        job_name = re.search(r'"type"\s*:\s*"(\w+)"', task.group(0))
        number = re.search(r'"index"\s*:\s*"?(\d+)', task.group(0))
        if job_name and number:
            return job_name.group(1) + number.group(1)
    ranks = [os.environ[name] for name in _RANKS if os.environ.get(name, "").isdigit()]
    return ranks[0] if ranks else ""
