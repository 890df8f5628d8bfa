"""Writes the images of a camera: a folder for each class, which carries the process's number."""
import os
import sys

import numpy as np

root = sys.argv[1]
for number in range(8):
    folder = os.path.join(root, f"{'abcdefgh'[number]}-{os.getpid()}")
    os.makedirs(folder)
    for image in range(3):
        np.save(os.path.join(folder, f"{image}.npy"), np.full(9, number + image / 3, np.float32))
