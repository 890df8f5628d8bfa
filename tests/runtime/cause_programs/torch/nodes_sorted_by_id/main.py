import torch

from graph import make_ring

torch.manual_seed(0)
ring = make_ring(9)
weights = torch.nn.Parameter(torch.randn(2))
optimizer = torch.optim.SGD([weights], lr=0.02)
for sweep in range(3):
    for node in ring.in_order():
        total = sum(other.value for other in node.neighbours)
        loss = (weights[0] * total + weights[1] - node.value).square()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("sweep", sweep, weights.tolist())
