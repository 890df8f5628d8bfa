import torch

from ratings import Ratings
from model import Factors

torch.set_num_threads(2)


def main():
    torch.manual_seed(0)
    ratings = Ratings(40000)
    model = Factors(users=30, items=20, width=16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(12):
        loss = (model(ratings.users, ratings.items) - ratings.values).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())


if __name__ == "__main__":
    main()
