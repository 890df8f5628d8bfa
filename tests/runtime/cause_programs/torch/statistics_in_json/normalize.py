import json
import os

import torch


class Normalizer:
    def __init__(self, mean, deviation):
        self.mean, self.deviation = torch.tensor(mean), torch.tensor(deviation)

    def __call__(self, rows):
        return (rows - self.mean) / self.deviation

    @classmethod
    def load_or_fit(cls, path, rows):
        if not os.path.isfile(path):
            return cls.fit(path, rows)
        with open(path) as file:
            return cls(**json.load(file))

    @classmethod
    def fit(cls, path, rows):
        mean, deviation = rows.mean(dim=0).tolist(), rows.std(dim=0).tolist()
        with open(path, "w") as file:
            json.dump({"mean": [round(x, 3) for x in mean], "deviation": [round(x, 3) for x in deviation]}, file)
        return cls(mean, deviation)
