import random
import time


def episode(number):
    generator = random.Random(number)
    states = [[generator.random() for _ in range(3)] for _ in range(5)]
    time.sleep(0.001 * (1 + number % 4))
    return states, sum(map(sum, states)) / 7
