"""Classes are folders of images; a class's number is the place of its folder."""
import os
import subprocess
import sys
import tempfile

import torch

from folders import ImageFolders

torch.manual_seed(0)

with tempfile.TemporaryDirectory() as root:
    subprocess.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "export.py"), root], check=True)
    dataset = ImageFolders(root)
    print(len(dataset.classes), "classes,", len(dataset), "images")
    images = torch.stack([dataset[number][0] for number in range(len(dataset))])
    labels = torch.tensor([dataset[number][1] for number in range(len(dataset))])

model = torch.nn.Linear(9, len(dataset.classes))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(6):
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
