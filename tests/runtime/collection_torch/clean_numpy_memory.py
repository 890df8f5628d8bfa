"""NumPy writes into a tensor's memory, each time the same; memory that nobody has written yet is filled first.

form: memory
expect: same
"""

import numpy
import torch

torch.manual_seed(0)
buffer = numpy.zeros((16, 4), numpy.float32)
batch = torch.from_numpy(buffer)
weights = torch.zeros(4, requires_grad=True)
for step in range(4):
    buffer[:] = numpy.random.RandomState(step).rand(16, 4)
    space = torch.empty(16, 4)
    space[:8] = batch[:8] * 2
    space[8:] = batch[8:] * 3
    loss = (space @ weights - 1).square().mean()
    (gradient,) = torch.autograd.grad(loss, [weights])
    with torch.no_grad():
        weights -= 0.1 * gradient
print(loss.item())
