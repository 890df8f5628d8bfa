"""The names of the machine, the user and the job of a cluster, which are the same in each run on one machine.

Noted: calls from a line of the user's, and reads of environment variables with such names. Varied: another name.
Cannot be varied: what C code asks for. Example: ``random.seed(socket.gethostname())``, ``seed =
int(os.environ["SLURM_JOB_ID"])``.
"""

import os

from .base import Kind

VARIABLES = frozenset(
    ["HOST", "HOSTNAME", "LOGNAME", "USER", "USERNAME"]
    + ["JOB_ID", "LSB_JOBID", "PBS_JOBID", "SLURM_JOBID", "SLURM_JOB_ID"]
)
FRAMES = 3  # os.getenv and the functions that it calls lie between a variable and the line that reads it


class Machine(Kind):
    name, label = "machine", "the name of the machine, the user or the job"
    has_pin, constant = False, True

    def open(self):
        self._replace(os, "uname", _change_node_name)
        self._replace(os, "getlogin", _change_name)
        self.replace(
            type(os.environ),
            "__getitem__",
            None,
            unless=self._is_other_variable,
            varied=lambda seed, original, variables, name: _change_variable(seed, original(variables, name)),
        )
        self.interposer.imports.add(
            {
                "socket": lambda module: [
                    self._replace(module, name, _change_name) for name in ("gethostname", "getfqdn")
                ],
                "platform": lambda module: [
                    self._replace(module, name, change)
                    for name, change in (
                        ("node", _change_name),
                        ("uname", lambda seed, system: system._replace(node=_change_name(seed, system.node))),
                    )
                ],
                "getpass": lambda module: self._replace(module, "getuser", _change_name),
                "uuid": lambda module: self._replace(module, "getnode", lambda seed, number: number ^ seed),
            }
        )

    def _replace(self, module, name, change):
        """Replace module.name. change(seed, result): returns the result on another machine."""
        if hasattr(module, name):
            self.replace(
                module,
                name,
                None,
                unless=self.is_called_by_library,
                varied=lambda seed, original, *args, **kwargs: change(seed, original(*args, **kwargs)),
            )

    def _is_other_variable(self, variables, name):
        is_other = name not in VARIABLES or self.interposer.is_called_by_project()
        return is_other or not self.interposer.is_called_by_user(FRAMES)


def _change_name(seed, name):
    return "{}-{}".format(name, seed)


def _change_variable(seed, name):
    """Return another name; the number of a job stays a number."""
    return str(int(name) + seed) if name.isdigit() else _change_name(seed, name)


def _change_node_name(seed, system):
    return type(system)(_change_name(seed, field) if field == system[1] else field for field in system)
