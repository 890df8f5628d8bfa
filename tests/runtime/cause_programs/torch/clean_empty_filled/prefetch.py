import queue
import threading


def prefetched(items, size=2):
    """The items, made by a thread beside."""
    ready, end = queue.Queue(size), object()

    def fill():
        for item in items:
            ready.put(item)
        ready.put(end)

    threading.Thread(target=fill, daemon=True).start()
    while (item := ready.get()) is not end:
        yield item
