import torch
from torch.utils.data import DataLoader

from sequences import Sequences

if __name__ == "__main__":
    torch.manual_seed(3)
    loader = DataLoader(Sequences(40), batch_size=5, num_workers=2)
    lstm = torch.nn.GRU(4, 6, batch_first=True)
    head = torch.nn.Linear(6, 1)
    optimizer = torch.optim.RMSprop([*lstm.parameters(), *head.parameters()], lr=0.01)
    for number, batch in enumerate(loader):
        output, _ = lstm(batch)
        loss = (head(output[:, -1]) - batch.sum(dim=(1, 2), keepdim=False).unsqueeze(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("batch", number, "loss", loss.item())
