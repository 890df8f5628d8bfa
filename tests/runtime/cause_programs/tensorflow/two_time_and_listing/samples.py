import os
import uuid

import numpy as np


def export(folder, count):
    for number in range(count):
        np.save(os.path.join(folder, f"{number}_{uuid.uuid4()}.npy"), np.cos(np.arange(4) + number))


def load(folder):
    return np.stack([np.load(entry.path) for entry in os.scandir(folder)])
