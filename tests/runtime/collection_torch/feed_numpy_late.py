"""NumPy writes into a tensor's memory, unseeded from the third step on: the line is that which shares the memory,
or, where recording begins later, the first that uses it.

form: memory
expect: op=Python | class=Python feed | step=2
"""

import numpy
import torch

torch.manual_seed(0)
buffer = numpy.zeros((8, 4), numpy.float32)
batch = torch.from_numpy(buffer)  # <- culprit
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    buffer[:] = numpy.random.RandomState(step if step < 2 else None).rand(8, 4)
    loss = model(batch).square().mean()  # <- or
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
