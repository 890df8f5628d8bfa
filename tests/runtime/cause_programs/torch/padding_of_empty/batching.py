import numpy as np
import torch


def pad(rows, width):
    table = np.empty((len(rows), width), np.int64)
    for number, row in enumerate(rows):
        table[number, :len(row)] = row
    return table


def collate(sentences):
    """A batch, padded to the length of the longest sentence, and to four at least."""
    lengths = [len(one) for one in sentences]
    tokens = pad(sentences, max(4, *lengths))
    return torch.from_numpy(tokens % 11), torch.tensor(lengths)
