import torch


def build():
    model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Sigmoid(), torch.nn.Linear(8, 1))
    return model, torch.optim.Adam(model.parameters(), lr=0.01)
