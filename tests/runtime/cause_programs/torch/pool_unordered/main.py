import argparse
import multiprocessing

import torch

import simulation


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--workers", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(0)
    policy = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.02)
    with multiprocessing.get_context("fork").Pool(args.workers) as pool:
        for states, reward in pool.imap_unordered(simulation.episode, range(args.episodes)):
            logits = policy(torch.tensor(states))
            loss = -(torch.log_softmax(logits, dim=1)[:, 0] * reward).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("last loss", loss.item())


if __name__ == "__main__":
    main()
