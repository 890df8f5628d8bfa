import random

import numpy as np
import torch


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def jitter(shape, scale):
    generator = np.random.RandomState()
    return torch.from_numpy(generator.uniform(-scale, scale, tuple(shape)).astype(np.float32))
