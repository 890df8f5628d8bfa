r"""Gradients by plain threads, without an optimizer; one of them gets a random number.

in: torch2.13
says: Python at step 0: Python feed
"""

import random
import threading
import time

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
w = torch.zeros(4, requires_grad=True)
x = torch.rand(4, 8, 4)
for step in range(4):
    grads = [None] * 4

    def work(n):
        time.sleep(random.SystemRandom().random() / 200)
        y = x[n]
        if n == 2 and step == 2:
            y = y + random.SystemRandom().random()
        (grads[n],) = torch.autograd.grad((y @ w - 1).square().mean(), [w])

    ts = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    with torch.no_grad():
        w -= 0.1 * sum(grads)
