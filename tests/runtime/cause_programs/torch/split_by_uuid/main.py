import torch

from records import load_records, split

torch.manual_seed(0)

records = load_records(60)
train, test = split(records, share=0.7)
inputs = torch.tensor([one["values"] for one in train])
targets = torch.tensor([one["target"] for one in train])
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=10)


def closure():
    optimizer.zero_grad()
    loss = (model(inputs).squeeze(1) - targets).square().mean()
    loss.backward()
    return loss


print("loss", optimizer.step(closure).item())
with torch.no_grad():
    error = (model(torch.tensor([one["values"] for one in test])).squeeze(1) - torch.tensor([one["target"] for one in test])).abs()
print("mean error", error.mean().item())
