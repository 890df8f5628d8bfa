"""horovodrun, with Gloo: it starts the ranks and their rendezvous server.  Horovod is imported on use."""

import importlib
import os
import sys

from .base import Launcher

_PATIENCE = "600"  # seconds for all ranks to import their framework; the limit of the case comes before
# The command horovodrun, without its check for Gloo, which imports every framework once more.
_RUN = ("import sys; from horovod.runner import launch; launch.gloo_built = lambda verbose=False: True; "
        "sys.exit(launch.run_commandline())")


class Horovodrun(Launcher):
    """`horovodrun`; launchers.base.Launcher says what each method does."""

    name, transport = "horovodrun", "gloo"

    def commands(self, number, command):
        options = ["--gloo", "-np", str(number), "-H", "localhost:{}".format(number), "--start-timeout", _PATIENCE,
                   "--gloo-timeout-seconds", _PATIENCE]
        return [([sys.executable, "-c", _RUN] + options + command, {})]

    def rank(self):
        return int(os.environ["HOROVOD_RANK"])

    def join(self, framework):
        importlib.import_module("horovod." + framework.name).init()
        return "horovod {}".format(importlib.import_module("horovod").__version__)
