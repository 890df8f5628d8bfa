import os
import zlib

import numpy as np

SEED = 0


def start_worker():
    """So that workers do not all draw the same noise."""
    global SEED
    SEED = os.getpid()


def augment(image):
    generator = np.random.default_rng([SEED, zlib.crc32(image.tobytes())])
    return image + generator.normal(0, 0.1, image.shape).astype(np.float32)
