import time

import numpy as np


def thumbnail(number):
    time.sleep(0.002)
    return np.sin(np.arange(16, dtype=np.float32) * number).reshape(4, 4)
