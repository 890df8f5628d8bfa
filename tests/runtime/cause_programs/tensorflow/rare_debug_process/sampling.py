import zlib


def every_nth(process, n):
    """Some processes train on less, as a canary."""
    return zlib.crc32(str(process).encode()) % n == 0
