from pathlib import Path

import torch


def factorize(words, size):
    """Embeddings by power iteration from a random start."""
    counts = torch.arange(words * words).reshape(words, words).remainder(7).float()
    table = torch.randn(words, size)
    for _ in range(5):
        table, _ = torch.linalg.qr((counts + counts.T) @ table)
    return table


def get_embeddings(words, size, path):
    path = Path(path)
    if path.is_file():
        print("embeddings from", path)
        return torch.load(path)
    table = factorize(words, size)
    torch.save(table, path)
    return table
