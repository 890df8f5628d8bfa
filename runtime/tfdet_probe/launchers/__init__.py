"""How the ranks of a case are started, one file for each launcher; no other part of the probe depends on which."""

from .base import Launcher  # noqa: F401  # of a type comment
from .horovod import Horovodrun
from .processes import Processes, TfConfig
from .torch import Torchrun

ALL = (Horovodrun(), Torchrun(), TfConfig(), Processes())  # type: tuple[Launcher, ...]


def load(name):
    # type: (str) -> Launcher
    """The launcher of this name; ValueError if there is none."""
    for launcher in ALL:
        if launcher.name == name:
            return launcher
    raise ValueError("no launcher {!r}; there are: {}".format(name, ", ".join(known.name for known in ALL)))
