import torch

from batching import collate

torch.manual_seed(0)
SENTENCES = [[3, 1, 4], [1, 5], [9, 2, 6, 5, 3], [5, 8, 9, 7], [9], [3, 2, 3, 8, 4, 6]]

embedding = torch.nn.Embedding(11, 5)
head = torch.nn.Linear(5, 2)
optimizer = torch.optim.Adam([*embedding.parameters(), *head.parameters()], lr=0.05)
for epoch in range(3):
    for begin in range(0, len(SENTENCES), 2):
        tokens, lengths = collate(SENTENCES[begin:begin + 2])
        logits = head(embedding(tokens).mean(dim=1))
        loss = torch.nn.functional.cross_entropy(logits, lengths % 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
