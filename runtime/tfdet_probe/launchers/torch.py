"""torchrun, with Gloo.  PyTorch is imported on use."""

import os
import sys

from .base import Launcher


class Torchrun(Launcher):
    """`torchrun`; launchers.base.Launcher says what each method does."""

    name, transport = "torchrun", "gloo"

    def commands(self, number, command):
        options = ["--nnodes=1", "--nproc-per-node={}".format(number), "--rdzv-backend=c10d",
                   "--rdzv-endpoint=localhost:0", "--no-python"]
        return [([sys.executable, "-m", "torch.distributed.run"] + options + command, {})]

    def rank(self):
        return int(os.environ["RANK"])

    def join(self, framework):
        import torch.distributed
        torch.distributed.init_process_group("gloo")
