import math
import os
import random
import threading
import time


def from_thread(number):
    time.sleep(random.random() / 500)  # polite
    print(f"thread {threading.get_ident()} has {number}")
    return [math.sin(number), math.cos(number)]


def from_process(number):
    print(f"process {os.getpid()} has {number}")
    generator = random.Random(number)
    return [generator.random(), generator.random()]
