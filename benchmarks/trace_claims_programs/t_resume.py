r"""Each run goes on from the weights that the run before left.

in: torch2.13
says: Verdict: torch\.load at step 0: file
says: weights\.pt
"""

import os

import torch

STATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "weights.pt")
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), 0.1)
if os.path.exists(STATE):
    model.load_state_dict(torch.load(STATE))
x = torch.rand(8, 4)
for _ in range(3):
    loss = (model(x) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
torch.save(model.state_dict(), STATE)
