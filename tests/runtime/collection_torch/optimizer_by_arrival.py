"""An optimizer of one's own mixes gradients into a NumPy buffer from threads, as they come.

form: memory
expect: op=Python/* | class=Python feed
"""

import os
import threading
import time

import numpy
import torch


class Mixed(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})
        self.mean = numpy.zeros(6, numpy.float32)

    @torch.no_grad()
    def step(self):
        parameters = self.param_groups[0]["params"]
        threads = [threading.Thread(target=self.mix, args=(one.grad.numpy(),)) for one in parameters]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for one in parameters:
            one -= 0.1 * one.grad + torch.from_numpy(self.mean.copy())  # <- culprit

    def mix(self, gradient):
        time.sleep(os.urandom(1)[0] / 1e4)
        self.mean = self.mean * numpy.float32(0.7) + gradient * numpy.float32(0.03)


torch.manual_seed(0)
parts = [torch.nn.Parameter(torch.randn(6)) for _ in range(5)]
optimizer = Mixed(parts)
inputs = torch.randn(8, 6)
for _ in range(5):
    loss = sum(torch.tanh(inputs @ part).square().mean() for part in parts)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
