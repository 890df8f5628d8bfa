import torch
from torch.utils.data import DataLoader

from transforms import Compose, Flip, Jitter
from images import Images

torch.manual_seed(0)
SIZE = 8

pipeline = Compose([Flip(), Jitter(0.05)])
loader = DataLoader(Images(32, SIZE, pipeline), batch_size=8)
model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(2):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}, loss {loss.item():.4f}")
torch.save(model.state_dict(), "model.pt")
