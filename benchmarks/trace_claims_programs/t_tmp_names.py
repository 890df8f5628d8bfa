r"""Files in a temporary folder, whose name is another one each time: nothing differs.

in: torch2.13
says: No difference
"""

import os
import tempfile

import torch

torch.manual_seed(0)
folder = tempfile.mkdtemp(prefix="run-")
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), 0.1)
path = os.path.join(folder, "x.bin")
with open(path, "wb") as f:
    f.write(bytes(range(128)))
x = torch.from_file(path, dtype=torch.uint8, size=32).float().reshape(8, 4) / 100
for _ in range(3):
    loss = (model(x) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    torch.save(model.state_dict(), os.path.join(folder, "w.pt"))
    model.load_state_dict(torch.load(os.path.join(folder, "w.pt")))
