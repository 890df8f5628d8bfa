import argparse

import torch

from settings import Settings
from training import fit


def parse():
    parser = argparse.ArgumentParser(description="regression")
    parser.add_argument("--seed", type=int, default=None, help="a fixed seed")
    parser.add_argument("--steps", type=int, default=20)
    return parser.parse_args()


if __name__ == "__main__":
    options = parse()
    settings = Settings(seed=options.seed)
    torch.manual_seed(settings.seed)
    print("seed:", settings.seed)
    fit(options.steps)
