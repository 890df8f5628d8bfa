import os

import torch


class Checkpoint:
    def __init__(self, path):
        self.path = path

    def restore(self, model, optimizer):
        """The epoch to begin with."""
        if not os.path.exists(self.path):
            return 0
        state = torch.load(self.path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        return state["epoch"]

    def save(self, model, optimizer, epoch):
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, self.path)
