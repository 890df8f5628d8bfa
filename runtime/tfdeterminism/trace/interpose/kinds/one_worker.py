"""Several workers.

Pinned: one, by the constructor's argument. It takes much else away, and is given up first.
Cannot be pinned: processes that the program starts one by one.
Example: ``Pool(4)``, of whose workers each adds to one file.
"""

import functools
import inspect

from .base import Kind

_WORKERS = (
    ("multiprocessing.pool", "Pool", "processes", 1),
    ("concurrent.futures.thread", "ThreadPoolExecutor", "max_workers", 1),
    ("concurrent.futures.process", "ProcessPoolExecutor", "max_workers", 1),
)


class OneWorker(Kind):
    name, words, coarse = "one-worker", "several workers", 5

    def open(self):
        for module, name, argument, number in _WORKERS:
            self.interposer.imports.add(
                {module: functools.partial(self._limit_class, name, argument, number)}
            )

    def _limit_class(self, name, argument, number, module):
        self.limit(getattr(module, name), argument, number)

    def limit(self, owner, argument, number, unset=()):
        """Give a class's constructor `number` workers where the pin holds. unset: arguments that it then must not
        have."""
        original, kind = owner.__init__, self
        signature = inspect.signature(original)

        @functools.wraps(original)
        def __init__(self, *args, **kwargs):
            place, given = kind.interposer.place(), signature.bind(self, *args, **kwargs).arguments
            several = given.get(argument, number if number == 0 else None) != number
            held = several and kind.holds(place)
            if several:
                kind.note(place, owner.__name__, None, held)
            if not held:
                return original(self, *args, **kwargs)
            given[argument] = number
            given.pop("self", None)
            more = given.pop("kwargs", {})
            rest = dict(given, **more)
            return original(self, **{key: value for key, value in rest.items() if key not in unset})

        owner.__init__ = __init__
