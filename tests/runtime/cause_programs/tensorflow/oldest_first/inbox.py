import os
import time

import numpy as np


class Inbox:
    def __init__(self, folder):
        self.folder = folder

    def put(self, name, values):
        time.sleep(0.003 + len(name) % 3 / 1000 + abs(float(values.mean())) / 500)  # the network
        np.save(os.path.join(self.folder, name + ".npy"), values)

    def oldest_first(self):
        names = sorted(os.listdir(self.folder))
        return sorted((os.path.join(self.folder, name) for name in names), key=lambda path: os.stat(path).st_mtime_ns)
