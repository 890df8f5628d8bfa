import torch

from normalize import Normalizer

torch.manual_seed(0)
rows = torch.rand(64, 3) * torch.tensor([1.0, 10.0, 100.0])
normalizer = Normalizer.load_or_fit("statistics.json", rows)
inputs = normalizer(rows)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = (model(inputs) - rows[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss %.4f" % loss.item())
