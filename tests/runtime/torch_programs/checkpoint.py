"""Reproducible checkpointing: eight steps in one go, or four from a checkpoint; prints the digest of the weights.

checkpoint.py save FILE           all eight, and keeps the state after four
checkpoint.py resume FILE PART... the last four from there, for each PART without that part of the state; with all if
                                  no part has that name
"""

import hashlib
import random
import sys

import numpy as np
import torch

STEPS, HALF = 8, 4


class Training:
    def __init__(self):
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.05)
        self.rate = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=3, gamma=0.5)
        self.step = 0

    def run(self, until):
        while self.step < until:
            batch = torch.from_numpy(np.random.normal(size=(4, 8)).astype("float32")) * random.random()
            self.optimizer.zero_grad()
            self.model(batch).pow(2).mean().backward()
            self.optimizer.step()
            self.rate.step()
            self.step += 1

    def state(self):
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "rate": self.rate.state_dict(),
            "step": self.step,
            "torch": torch.get_rng_state(),
            "numpy": np.random.get_state(),
            "python": random.getstate(),
        }

    def load(self, state):
        for name in ("model", "optimizer", "rate"):
            if name in state:
                getattr(self, name).load_state_dict(state[name])
        self.step = state["step"]
        for name, restore in (
            ("torch", torch.set_rng_state),
            ("numpy", np.random.set_state),
            ("python", random.setstate),
        ):
            if name in state:
                restore(state[name])

    def digest(self):
        return hashlib.sha256(
            b"".join(value.detach().numpy().tobytes() for value in self.model.parameters())
        ).hexdigest()


def begin():
    random.seed(7)
    np.random.seed(7)
    torch.manual_seed(7)
    return Training()


def saved(path):
    training = begin()
    training.run(HALF)
    torch.save(training.state(), path)
    training.run(STEPS)
    return training.digest()


def resumed(path, without):
    training = begin()
    training.run(2)  # as a program that has drawn numbers before it loads
    state = torch.load(path, weights_only=False)
    training.load({name: part for name, part in state.items() if name != without})
    training.run(STEPS)
    return training.digest()


if __name__ == "__main__":
    if sys.argv[1] == "save":
        print(saved(sys.argv[2]))
    else:
        for part in sys.argv[3:]:
            print(resumed(sys.argv[2], part))
