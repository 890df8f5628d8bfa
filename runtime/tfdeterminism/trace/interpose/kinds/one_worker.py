"""Several workers.

Pinned: one worker, by the constructor's argument. This removes other nondeterminism, too, so that this pin is given up
first. Cannot be pinned: processes that the program starts one by one. Example: ``Pool(4)``, each of whose workers adds
to one file.
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
    name, label, coarseness = "one-worker", "several workers", 5  # 5: the pin that removes most other nondeterminism

    def open(self):
        for module, name, argument, number in _WORKERS:
            self.interposer.imports.add(
                {module: functools.partial(self._limit_class, name, argument, number)}
            )

    def _limit_class(self, name, argument, number, module):
        self.limit(getattr(module, name), argument, number)

    def limit(self, owner, argument, number, unset=()):
        """Give a class's constructor `number` workers where the pin holds.

        unset: arguments that the constructor then must not have.
        """
        original, kind = owner.__init__, self
        signature = inspect.signature(original)

        @functools.wraps(original)
        def __init__(self, *args, **kwargs):
            place, arguments = kind.interposer.place(), signature.bind(self, *args, **kwargs).arguments
            # Without the argument a constructor chooses several workers, unless 0 (none) is the number of the pin.
            has_several = arguments.get(argument, number if number == 0 else None) != number
            is_held = has_several and kind.is_pinned(place)
            if has_several:
                kind.note(place, owner.__name__, value=None, held=is_held)
            if not is_held:
                return original(self, *args, **kwargs)
            arguments[argument] = number
            arguments.pop("self", None)
            extra = arguments.pop("kwargs", {})
            all_arguments = dict(arguments, **extra)
            return original(self, **{key: value for key, value in all_arguments.items() if key not in unset})

        owner.__init__ = __init__
