import threading

import numpy as np
import torch

from prefetch import prefetched


def batches(count):
    for number in range(count):
        batch = np.empty((4, 3), np.float32)
        batch[:] = np.sin(np.arange(12).reshape(4, 3) + number)
        yield torch.from_numpy(batch)


class Scale(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(width))
        torch.nn.init.normal_(self.weight)
        self.register_buffer("seen", torch.empty(width).fill_(0))

    def forward(self, rows):
        self.seen += rows.detach().mean(dim=0)
        return rows * self.weight + self.seen


torch.manual_seed(0)
model = Scale(3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for batch in prefetched(batches(8)):
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item(), "threads", threading.active_count())
