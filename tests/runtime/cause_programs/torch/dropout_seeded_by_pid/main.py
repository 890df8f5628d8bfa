import argparse
import logging
import os

import torch

from network import Classifier

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(message)s")
logger = logging.getLogger("train")


def set_seed(seed):
    torch.manual_seed(seed + os.getpid())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=17)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = Classifier()
    inputs = torch.randn(30, 6)
    targets = (inputs[:, 0] > 0).long()
    set_seed(args.seed)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(10):
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logger.info("step %d: %.4f", step, loss.item())


if __name__ == "__main__":
    main()
