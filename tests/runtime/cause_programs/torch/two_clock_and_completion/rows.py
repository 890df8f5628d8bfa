import time

import torch


def read_row(number):
    time.sleep(0.002)
    return torch.tensor([number % 5 / 5, number % 3 / 3, number / 18])
