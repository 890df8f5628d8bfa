r"""Each run reads how often it ran, and raises the number: the inputs hang on it.

in: torch2.13
says: counter\.json \(
says: Verdict: .*: (file|Python feed)
"""

import json
import os

import torch

STATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "counter.json")
runs = json.load(open(STATE))["runs"] if os.path.exists(STATE) else 0
with open(STATE, "w") as f:
    json.dump({"runs": runs + 1}, f)
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), 0.1)
x = torch.ones(8, 4) * (1 + runs / 100)
for _ in range(3):
    loss = (model(x) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
