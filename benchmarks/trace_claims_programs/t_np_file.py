r"""What is read by NumPy was written before with numbers that nobody seeded.

in: torch2.13
says: : file \(
says: data\.bin .* which the run itself had written
"""

import os
import tempfile

import numpy as np
import torch

path = os.path.join(tempfile.mkdtemp(), "data.bin")
np.random.default_rng().random(32, dtype="float32").tofile(path)
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), 0.1)
data = np.fromfile(path, dtype="float32").reshape(8, 4)
x = torch.from_numpy(data)
for _ in range(3):
    loss = (model(x) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
