import math
import os


def shards(count):
    return [[[math.sin(shard + row * column) for column in range(5)] for row in range(8)] for shard in range(count)]


def choose_shard(every):
    """Processes beside each other take different ones."""
    start = os.getpid() % 997 / 997
    return [[value + start for value in row] for row in every[0]]
