"""The backward of an autograd.Function adds from threads of Python in any order, by NumPy.

The line marked `or` is right as well.

form: memory
expect: op=Python/* | class=Python feed
"""

import os
import threading
import time

import numpy
import torch


class Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weights):
        ctx.save_for_backward(rows)
        return rows @ weights

    @staticmethod
    def backward(ctx, upstream):
        (rows,) = ctx.saved_tensors
        parts = [(row[:, None] * up[None]).numpy() for row, up in zip(rows, upstream, strict=True)]
        total = numpy.zeros(parts[0].shape, numpy.float32)

        def add(part):
            nonlocal total
            time.sleep(os.urandom(1)[0] / 2e4)
            total = total + part * numpy.float32(1.1)

        threads = [threading.Thread(target=add, args=(part,)) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return None, torch.from_numpy(total)  # <- culprit


torch.manual_seed(0)
weights = torch.nn.Parameter(torch.randn(5, 3))
optimizer = torch.optim.SGD([weights], lr=0.01)
inputs = torch.randn(12, 5)
for _ in range(4):
    loss = Weighted.apply(inputs, weights).exp().mean()
    optimizer.zero_grad()
    loss.backward()  # <- or
    optimizer.step()
