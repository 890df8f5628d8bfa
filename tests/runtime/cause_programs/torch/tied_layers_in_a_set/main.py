import torch

from network import TiedNetwork


def initialize(model):
    """Each layer once, also those that are shared."""
    for layer in model.unique_layers():
        torch.nn.init.normal_(layer.weight, std=0.3)
        torch.nn.init.zeros_(layer.bias)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = TiedNetwork(depth=6)
    initialize(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    inputs = torch.linspace(-1, 1, 40).reshape(10, 4)
    for _ in range(4):
        loss = (model(inputs) - inputs.flip(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
