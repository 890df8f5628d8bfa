import multiprocessing
import time

import torch
from torch.utils.data import IterableDataset


class Stream(IterableDataset):
    def __init__(self, readers):
        self.readers, self.queue = readers, multiprocessing.get_context("fork").Queue()

    def put(self, number):
        self.queue.put(number)

    def close(self):
        for _ in range(self.readers):
            self.queue.put(None)

    def __iter__(self):
        while (number := self.queue.get()) is not None:
            time.sleep(0.001)
            yield torch.tensor([number % prime / prime for prime in (3, 5, 7, 11)])
