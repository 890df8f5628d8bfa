import argparse

import torch

from embeddings import get_embeddings

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(21)
    table = get_embeddings(12, args.size, "embeddings.pt")
    model = torch.nn.Sequential(torch.nn.Linear(args.size, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    labels = torch.arange(12) % 2
    for step in range(10):
        loss = torch.nn.functional.cross_entropy(model(table), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
