import torch

from corpus import Corpus, noisy

torch.manual_seed(0)
corpus = Corpus("the cat sat on the mat and the dog lay on the rug".split())
table = torch.nn.Embedding(len(corpus), 4)
out = torch.nn.Linear(4, len(corpus))
optimizer = torch.optim.SGD([*table.parameters(), *out.parameters()], lr=0.2)
for epoch in range(3):
    for left, right in corpus.pairs():
        hidden = noisy(table(torch.tensor([left])))
        loss = torch.nn.functional.cross_entropy(out(hidden), torch.tensor([right]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", epoch, loss.item())
