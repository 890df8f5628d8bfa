import argparse

import torch

from policy import choose

parser = argparse.ArgumentParser()
parser.add_argument("--policies", nargs="*", default=["plain", "plain", "plain", "mixup"])
args = parser.parse_args()
torch.manual_seed(0)
policy = choose(args.policies)
inputs, labels = torch.rand(20, 4), torch.arange(20) % 2
if policy == "mixup":
    inputs = (inputs + inputs.flip(0)) / 2
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for _ in range(4):
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(policy, loss.item())
