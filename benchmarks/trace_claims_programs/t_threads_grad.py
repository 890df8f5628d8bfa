r"""Gradients of four shards by plain threads, summed in order: nothing differs.

in: torch2.13
says: No difference
"""

import random
import threading
import time

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), 0.1)
x = torch.rand(4, 8, 4)
for _ in range(4):
    grads = [None] * 4

    def work(n):
        time.sleep(random.SystemRandom().random() / 200)
        loss = (model(x[n]) - 1).square().mean()
        grads[n] = torch.autograd.grad(loss, list(model.parameters()))

    ts = [threading.Thread(target=work, args=(n,), name=f"shard-{n}") for n in range(4)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    opt.zero_grad()
    for p, *gs in zip(model.parameters(), *grads):
        p.grad = sum(gs)
    opt.step()
