import torch

from crawler import Crawler

torch.manual_seed(0)
pages = Crawler(threads=4).crawl([f"page/{number}" for number in range(20)])
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for vector, label in pages:
    loss = torch.nn.functional.cross_entropy(model(vector.unsqueeze(0)), torch.tensor([label]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(len(pages), "pages, loss", loss.item())
