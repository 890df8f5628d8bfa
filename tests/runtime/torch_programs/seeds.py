"""Seeds: the first weights of a model over a vocabulary after a step of training with dropout.

Prints their digest without seeds, then with them.  PYTHONHASHSEED, which decides the order of the vocabulary, only the
caller can set.
"""

import hashlib
import random

import numpy as np
import torch

words = {"the", "cat", "sat", "on", "a", "mat", "and", "saw", "its", "tail"}  # a set: its order is that of hashes


def trained():
    index = {word: number for number, word in enumerate(words)}
    model = torch.nn.Sequential(torch.nn.Embedding(len(index), 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sentence = [index[word] for word in ("the", "cat", "saw", "its", "tail")]
    random.shuffle(sentence)
    noise = torch.from_numpy(np.random.normal(size=(len(sentence), 1)).astype("float32"))
    (model(torch.tensor(sentence)) - noise).pow(2).sum().backward()
    optimizer.step()
    return hashlib.sha256(b"".join(value.detach().numpy().tobytes() for value in model.parameters())).hexdigest()


print(trained())
random.seed(123)
np.random.seed(123)
torch.manual_seed(123)
print(trained())
