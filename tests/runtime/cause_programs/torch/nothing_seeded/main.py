import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def get_loaders(batch_size):
    inputs = torch.arange(240, dtype=torch.float32).reshape(80, 3) / 240
    targets = inputs.sum(dim=1, keepdim=True)
    train, valid = random_split(TensorDataset(inputs, targets), [60, 20])
    return DataLoader(train, batch_size=batch_size, shuffle=True), DataLoader(valid, batch_size=batch_size)


class Trainer:
    def __init__(self, model, rate):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=rate)

    def epoch(self, loader):
        for inputs, targets in loader:
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(inputs), targets).backward()
            self.optimizer.step()

    def evaluate(self, loader):
        with torch.no_grad():
            return sum(nn.functional.mse_loss(self.model(inputs), targets).item() for inputs, targets in loader)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.01)
    args = parser.parse_args()
    train_loader, valid_loader = get_loaders(args.batch_size)
    trainer = Trainer(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), args.lr)
    for number in range(3):
        trainer.epoch(train_loader)
        print(number, trainer.evaluate(valid_loader))
