import random


def choose(policies):
    return random.choice(policies)
