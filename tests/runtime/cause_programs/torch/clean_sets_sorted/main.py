import os

import torch

from catalogue import Catalogue

torch.manual_seed(0)
catalogue = Catalogue(os.path.dirname(os.path.abspath(__file__)))
print(len(catalogue.names), "files, extensions", ", ".join(sorted(catalogue.extensions)))
table = torch.nn.Embedding(len(catalogue.words), 3)
head = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.1)
for word in catalogue.words:
    loss = (head(table(torch.tensor([catalogue.number(word)]))) - len(word) / 10).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
