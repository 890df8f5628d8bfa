import random
import threading
import time


def wait_a_little():
    time.sleep(random.SystemRandom().random() / 100)


class Backup:
    """Copies weights in threads."""

    def __init__(self):
        self.copies = []

    def note(self, weights):
        threading.Thread(target=self.copies.append, args=(weights.copy(),)).start()
