import torch
from torch.utils.data import DataLoader

from features import FeatureHasher, UserEvents

torch.manual_seed(42)
BUCKETS = 16


class Ranker(torch.nn.Module):
    def __init__(self, buckets):
        super().__init__()
        self.table = torch.nn.Embedding(buckets, 4)
        self.head = torch.nn.Linear(8, 1)

    def forward(self, users, items):
        return self.head(torch.cat([self.table(users), self.table(items)], dim=1)).squeeze(1)


def train():
    hasher = FeatureHasher(BUCKETS)
    loader = DataLoader(UserEvents(hasher), batch_size=8, shuffle=True)
    model = Ranker(BUCKETS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        total = 0.0
        for users, items, clicked in loader:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(users, items), clicked)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total:.6f}")


if __name__ == "__main__":
    train()
