import os


def fresh_seed():
    return int.from_bytes(os.urandom(4), "little") >> 1
