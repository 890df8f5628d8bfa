"""Train a bag-of-words classifier of short reviews."""
import argparse

import torch

from text import Reviews
from vocabulary import build_vocabulary


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    reviews = Reviews()
    words = build_vocabulary(reviews.texts)
    model = torch.nn.Sequential(torch.nn.EmbeddingBag(len(words), 8), torch.nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(args.epochs):
        for text, label in zip(reviews.texts, reviews.labels):
            ids = torch.tensor([[words[word] for word in text.split()]])
            loss = torch.nn.functional.cross_entropy(model(ids), torch.tensor([label]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())


if __name__ == "__main__":
    main()
