"""The time of day, and the counters of time.

Pinned: each call gives one millisecond more than the one before. The waiting of the standard library (a queue's
timeout) keeps the real clock, or it would wait for ever. Cannot be pinned: C code, the time zone, how long something
takes. Example: ``random.seed(time.time())``.
"""

import copyreg
import time

from .base import Kind, nothing

_WAITS = frozenset(
    "threading queue subprocess selectors asyncio concurrent multiprocessing socket sched _tfdet_interpose "
    "tfdeterminism".split()
)  # packages that keep the real clock
_WALL = ("time", "time_ns")
_COUNTERS = ("monotonic", "perf_counter", "process_time", "thread_time")
_NANOSECONDS = tuple(name + "_ns" for name in _COUNTERS)
_COUNTERS_BEGIN = 1000.0  # seconds
_TICK = 0.001


class Clock(Kind):
    name, words, coarse = "clock", "the clock", 0

    def open(self):
        self._calls = 0
        for name in _WALL + _COUNTERS + _NANOSECONDS:
            self._replace_counter(name, self.interposer.epoch if name in _WALL else _COUNTERS_BEGIN)
        for name in ("localtime", "gmtime", "ctime"):  # without an argument they ask for the time of day
            self.replace(
                time,
                name,
                lambda place, original, *_: original(self._now(self.interposer.epoch)),
                nothing,
                unless=lambda *args: args and args[0] is not None,
            )
        local = time.localtime
        self.replace(
            time,
            "asctime",
            lambda place, original: original(local(self._now(self.interposer.epoch))),
            nothing,
            unless=lambda *args: args,
        )
        self.replace(
            time,
            "strftime",
            lambda place, original, form: original(form, local(self._now(self.interposer.epoch))),
            nothing,
            unless=lambda *args: len(args) > 1,
        )
        self.interposer.imports.add({"datetime": self._replace_datetime})

    def _replace_counter(self, name, begin):
        if name.endswith("_ns"):
            self.replace(time, name, lambda *_: int(self._now(begin) * 1000) * 10**6, unless=self._is_waiting)
        else:
            self.replace(time, name, lambda *_: self._now(begin), unless=self._is_waiting)

    def _is_waiting(self, *_):
        return self.interposer.direct_caller().f_globals.get("__name__", "").partition(".")[0] in _WAITS

    def _now(self, begin):
        self._calls += 1
        return begin + self._calls * _TICK

    def _replace_datetime(self, module):
        """datetime is a type of C: a subclass takes its place whose instances are the original's."""
        original_class = module.datetime

        class Meta(type):
            def __instancecheck__(cls, one):
                return isinstance(one, original_class)

            def __subclasscheck__(cls, one):
                return issubclass(one, original_class)

        class datetime(original_class, metaclass=Meta):  # type: ignore[misc,valid-type]
            __module__ = "datetime"

            def __new__(cls, *args, **kwargs):
                return original_class.__new__(original_class if cls is datetime else cls, *args, **kwargs)

        datetime.__qualname__ = "datetime"
        from_time = original_class.fromtimestamp
        utc = module.timezone.utc
        for name, give in (
            ("now", from_time),
            ("today", from_time),
            ("utcnow", lambda when: from_time(when, utc).replace(tzinfo=None)),
        ):
            self._replace_constructor(datetime, original_class, name, give)
        copyreg.pickle(original_class, lambda one: (datetime,) + one.__reduce__()[1:])
        module.datetime = datetime

    def _replace_constructor(self, owner, original_class, name, give):
        setattr(owner, name, getattr(original_class, name))
        self.replace(
            owner,
            name,
            lambda place, original, *args, **kwargs: give(self._now(self.interposer.epoch), *args, **kwargs),
            str,
        )
        setattr(owner, name, staticmethod(owner.__dict__[name]))
