import time
import zlib

import torch


def extract(item):
    time.sleep(0.002 + item % 3 / 1000)  # reads the item over the network
    return torch.tensor([zlib.crc32(f"{item}.{n}".encode()) % 1000 / 1000 for n in range(4)])
