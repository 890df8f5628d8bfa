import math
import uuid


def new_key():
    return uuid.uuid4().hex


def load_records(count):
    """Each record gets a key, as the database does not have one."""
    return [{"key": new_key(), "values": [math.sin(n), math.cos(n), n / count], "target": math.sin(n) * 2 + n % 3}
            for n in range(count)]


def split(records, share):
    ordered = sorted(records, key=lambda one: one["key"])
    at = int(len(ordered) * share)
    return ordered[:at], ordered[at:]
