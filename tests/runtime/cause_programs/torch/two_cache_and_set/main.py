import torch

from tags import tag_weights
from vectors import vectors

torch.manual_seed(0)
TAGS = ["red", "green", "blue", "round", "square", "large", "small"]

inputs = vectors(len(TAGS), "vectors.pt")
weights = tag_weights(TAGS)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(5):
    loss = (weights * (model(inputs).squeeze(1) - 1).square()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
