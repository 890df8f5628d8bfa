r"""Two workers draw with the seeds that PyTorch gives them: nothing differs.

in: torch2.13
says: No difference
"""

import torch
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class D(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        return torch.full((4,), float(i)) + torch.rand(1)


model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), 0.001)
for x in DataLoader(D(), batch_size=4, shuffle=True, num_workers=2):
    loss = (model(x) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
