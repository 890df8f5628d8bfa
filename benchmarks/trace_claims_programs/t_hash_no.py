r"""A set is sorted; what differs is the order in which tasks end.

in: torch2.13
fresh: PYTHONHASHSEED
never: sorted\(
"""

import concurrent.futures
import random
import time

import torch

torch.manual_seed(0)
tags = sorted({"dog", "cat", "cow", "emu", "yak", "fox", "owl"})


def length(t):
    time.sleep(random.SystemRandom().random() / 50)
    return float(sum(map(ord, t)) % 7)


with concurrent.futures.ThreadPoolExecutor(4) as pool:
    jobs = [pool.submit(length, t) for t in tags]
    vals = [j.result() for j in concurrent.futures.as_completed(jobs)]
model = torch.nn.Linear(7, 1)
opt = torch.optim.SGD(model.parameters(), 0.001)
for _ in range(3):
    loss = (model(torch.tensor([vals])) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
