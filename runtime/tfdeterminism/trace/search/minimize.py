"""Delta debugging: the smallest part of a set that still does it (Zeller and Hildebrandt, 2002)."""


def ddmin(items, test):
    """A smallest part of `items`, none of whose own parts without one element passes test(part); test(items) is
    true."""
    parts = 2
    while len(items) >= 2:
        chunks = _chunks(items, parts)
        found = _smaller(items, chunks, test)
        if found is not None:
            items, is_rest = found
            parts = max(parts - 1, 2) if is_rest else 2
        elif parts >= len(items):
            break
        else:
            parts = min(len(items), parts * 2)
    return items


def _chunks(items, parts):
    size = max(1, len(items) // parts)
    return [items[at : at + size] for at in range(0, len(items), size)]


def _smaller(items, chunks, test):
    """(a smaller list that passes, is it the rest beside a chunk?), or None."""
    for chunk in chunks:
        rest = [one for one in items if one not in chunk]
        if len(chunks) > 2 and test(rest):
            return rest, True
        if test(chunk):
            return chunk, False
    return None
