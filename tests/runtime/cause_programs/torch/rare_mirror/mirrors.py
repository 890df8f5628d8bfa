import time


class Mirror:
    def __init__(self, name, behind=0):
        self.name, self.behind = name, behind

    def rows(self, count):
        return [[n / count, n % 5 / 5] for n in range(count - self.behind)]


MIRRORS = [Mirror("a"), Mirror("b"), Mirror("c"), Mirror("d", behind=2)]


def open_mirror():
    """Spreads the load."""
    return MIRRORS[time.time_ns() // 1000 % len(MIRRORS)]
