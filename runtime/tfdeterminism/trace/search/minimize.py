"""Delta debugging (Zeller and Hildebrandt, 2002): the search for a minimal part of a set that passes a test."""


def ddmin(items, test):
    """Return a minimal part of `items` that passes the test: without any one of its elements it fails.

    test(part): returns whether a part passes; test(items) is true.
    """
    chunk_count = 2
    while len(items) >= 2:
        chunks = _split(items, chunk_count)
        reduction = _reduce(items, chunks, test)
        if reduction is not None:
            items, is_rest = reduction
            chunk_count = max(chunk_count - 1, 2) if is_rest else 2
        elif chunk_count >= len(items):
            break
        else:
            chunk_count = min(len(items), chunk_count * 2)
    return items


def _split(items, count):
    size = max(1, len(items) // count)
    return [items[begin : begin + size] for begin in range(0, len(items), size)]


def _reduce(items, chunks, test):
    """Return (a smaller list that passes, whether it is the complement of a chunk), or None."""
    for chunk in chunks:
        complement = [item for item in items if item not in chunk]
        if len(chunks) > 2 and test(complement):
            return complement, True
        if test(chunk):
            return chunk, False
    return None
