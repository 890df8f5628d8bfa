"""The names of the machine, the user and the job of a cluster: each run on one machine gets the same.

Noted: where a line of the user's asks, the environment's variables of these names too. Varied: another name.
Cannot be varied: what C code asks for.
Example: ``random.seed(socket.gethostname())``, ``seed = int(os.environ["SLURM_JOB_ID"])``.
"""

import os

from .base import Kind

VARIABLES = frozenset(
    ["HOST", "HOSTNAME", "LOGNAME", "USER", "USERNAME"]
    + ["JOB_ID", "LSB_JOBID", "PBS_JOBID", "SLURM_JOBID", "SLURM_JOB_ID"]
)
FRAMES = 3  # os.getenv, and what it calls, lie between a variable and the line that asks for it


class Machine(Kind):
    name, words = "machine", "the name of the machine, the user or the job"
    pinned, constant = False, True

    def open(self):
        self._replace(os, "uname", _renamed)
        self._replace(os, "getlogin", _other)
        self.replace(
            type(os.environ),
            "__getitem__",
            None,
            unless=self._is_other_variable,
            varied=lambda seed, original, variables, name: _other_name(seed, original(variables, name)),
        )
        self.interposer.imports.add(
            {
                "socket": lambda module: [self._replace(module, name, _other) for name in ("gethostname", "getfqdn")],
                "platform": lambda module: [
                    self._replace(module, name, change)
                    for name, change in (
                        ("node", _other),
                        ("uname", lambda seed, system: system._replace(node=_other(seed, system.node))),
                    )
                ],
                "getpass": lambda module: self._replace(module, "getuser", _other),
                "uuid": lambda module: self._replace(module, "getnode", lambda seed, number: number ^ seed),
            }
        )

    def _replace(self, module, name, change):
        """change(seed, what it gives): what it gives on another machine."""
        if hasattr(module, name):
            self.replace(
                module,
                name,
                None,
                unless=self.is_called_by_library,
                varied=lambda seed, original, *args: change(seed, original(*args)),
            )

    def _is_other_variable(self, variables, name):
        return name not in VARIABLES or not self.interposer.is_called_by_user(FRAMES)


def _other(seed, name):
    return "{}-{}".format(name, seed)


def _other_name(seed, name):
    """The number of a job stays a number."""
    return str(int(name) + seed) if name.isdigit() else _other(seed, name)


def _renamed(seed, system):
    return type(system)(_other(seed, part) if part == system[1] else part for part in system)
