"""The time of day, the counters of time, and timers that send a signal.

Pinned: each call returns one millisecond more than the one before, and a timer of the main thread sends its signal
after as many calls as it has milliseconds; calls that the user's lines make count, a thousand lines without one count
as a call, and a wait for a signal ends the timer. Waits of the standard library (a queue's timeout) use the real
clock, or they would never end. SQLite's 'now' is always the same time, if a text of the program asks for it.
Cannot be pinned: C code, the time zone, the duration of a computation, a signal that one long call waits for. Example:
``random.seed(time.time())``.
"""

import copyreg
import functools
import os
import signal
import sys
import threading
import time

from .base import Function, Kind, no_value

TIMERS = ("alarm", "setitimer")
_SIGNAL_WAITS = ("pause", "sigwait", "sigwaitinfo", "sigtimedwait")

_WAITS = frozenset(
    "threading queue subprocess selectors asyncio concurrent multiprocessing socket sched _tfdet_interpose "
    "tfdeterminism".split()
)  # packages that keep the real clock
_WALL = ("time", "time_ns")
_COUNTERS = ("monotonic", "perf_counter", "process_time", "thread_time")
_NANOSECONDS = tuple(name + "_ns" for name in _COUNTERS)
_COUNTERS_BEGIN = 1000.0  # seconds
_TICK = 0.001
_LINES = 1000  # that count as a call
_SQL_FUNCTIONS = ("date", "time", "datetime", "julianday", "strftime", "unixepoch")
_SQL_KEYWORDS = {"current_date": "date", "current_time": "time", "current_timestamp": "datetime"}  # {keyword: function}
_getpid, _kill = os.getpid, os.kill  # before they are pinned


class Clock(Kind):
    """The kind.  self.replace(owner, name, pinned, value, unless) wraps owner.name.

    pinned(place, original, ...) gives the result where the pin holds; value(result): what the ledger keeps of it;
    unless(...): whether the original is called instead. interposer.epoch: the time at which a pinned clock begins.
    """

    name, label, coarseness = "clock", "the clock", 0

    def open(self):
        self._calls = 0
        for name in _WALL + _COUNTERS + _NANOSECONDS:
            self._replace_counter(name, self.interposer.epoch if name in _WALL else _COUNTERS_BEGIN)
        for name in ("localtime", "gmtime", "ctime"):  # without an argument they return the current time
            self.replace(
                time,
                name,
                lambda place, original, *_: original(self._now(self.interposer.epoch)),
                no_value,
                unless=lambda *args: args and args[0] is not None,
            )
        local = time.localtime
        self.replace(
            time,
            "asctime",
            lambda place, original: original(local(self._now(self.interposer.epoch))),
            no_value,
            unless=lambda *args: args,
        )
        self.replace(
            time,
            "strftime",
            lambda place, original, form: original(form, local(self._now(self.interposer.epoch))),
            no_value,
            unless=lambda *args: len(args) > 1,
        )
        self.interposer.imports.add({"datetime": self._replace_datetime, "sqlite3": self._hook_sqlite})
        self._lines = 0  # that were run since the last call
        self._timer = None  # (calls until the signal is sent, its number, milliseconds of the interval)
        for name in TIMERS:
            self.replace(signal, name, self._count_calls, no_value, unless=self._starts_no_timer)
        for name in _SIGNAL_WAITS:
            self._end_timer_before(name)

    def _end_timer_before(self, name):
        """Let a function that waits for a signal get that of the pinned timer, which no call would count meanwhile."""
        original = getattr(signal, name)

        def wait(*args):
            if self._timer is None or threading.current_thread() is not threading.main_thread():
                return original(*args)
            number, interval = self._timer[1:]
            self._timer = (interval, number, interval) if interval else None
            is_handled = name == "pause" and signal.getsignal(number) not in (signal.SIG_IGN, signal.SIG_DFL)
            signal.pthread_kill(threading.get_ident(), number)  # another thread may not block it
            return None if is_handled else original(*args)

        setattr(signal, name, Function(wait, original, signal.__name__, name))

    def _starts_no_timer(self, *args):
        """Return whether a timer is switched off, or started by a library."""
        if any(args[1:] or args):
            return self.is_called_by_library()
        self._timer = None
        return True

    def _count_calls(self, place, original, *args):
        """Start a timer whose milliseconds are calls that the user's lines make in the main thread."""
        if threading.current_thread() is not threading.main_thread() or sys.getprofile() not in (None, self._on_call):
            return original(*args)
        seconds = args[1] if len(args) > 1 else args[0]
        signals = {signal.ITIMER_VIRTUAL: signal.SIGVTALRM, signal.ITIMER_PROF: signal.SIGPROF}
        number = signals.get(args[0], signal.SIGALRM) if len(args) > 1 else signal.SIGALRM
        interval = int(args[2] / _TICK) if len(args) > 2 else 0
        self._timer = max(1, int(seconds / _TICK)), number, interval
        sys.setprofile(self._on_call)
        self._count_lines()
        return (0.0, 0.0) if len(args) > 1 else 0

    def _on_call(self, frame, event, _):
        """Count a call, and send the signal of the timer after the last."""
        caller = frame.f_back if event == "call" else frame if event == "c_call" else None
        if caller is None or self._timer is None or not self.interposer.is_user(caller.f_code.co_filename):
            return
        self._lines = 0
        self._count_down()

    def _count_lines(self):
        """Let lines count, too, where the program makes no calls; a debugger is left alone."""
        if sys.gettrace() is not None:
            return
        frame = self.interposer.caller()
        while frame is not None:
            if self.interposer.is_user(frame.f_code.co_filename):
                frame.f_trace = self._on_line
            frame = frame.f_back
        sys.settrace(self._on_line)

    def _on_line(self, frame, event, _):
        if self._timer is None:
            sys.settrace(None)
            return None
        if event == "call":
            return self._on_line if self.interposer.is_user(frame.f_code.co_filename) else None
        self._lines += event == "line"
        if self._lines == _LINES:
            self._lines = 0
            self._count_down()
        return self._on_line

    def _count_down(self):
        if self._timer is None:
            return
        calls, number, interval = self._timer
        left = calls - 1 or interval
        self._timer = (left, number, interval) if left else None
        if calls == 1:
            _kill(_getpid(), number)

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

    def _hook_sqlite(self, module):
        original = module.connect

        @functools.wraps(original)
        def connect(*args, **kwargs):
            connection = original(*args, **kwargs)
            if self.interposer.sets.asks_sql_for_time:
                functions = original(":memory:", check_same_thread=False)  # they are replaced in the other connection
                options = {"deterministic": True} if sys.version_info >= (3, 8) else {}  # an index may need it
                for name in _SQL_FUNCTIONS:
                    connection.create_function(name, -1, self._sql_function(name, functions), **options)
                for name in _SQL_KEYWORDS:
                    connection.create_function(name, 0, self._sql_keyword(name, functions), **options)
            return connection

        module.connect = module.dbapi2.connect = connect

    def _sql_function(self, name, functions):
        position = 1 if name == "strftime" else 0  # of the time among the arguments

        def call(*values):
            values = values + ("now",) if len(values) == position else values
            if str(values[position]).lower() == "now":
                values = values[:position] + self._sql_now(name) + values[position + 1 :]
            sql = "select {}({})".format(name, ", ".join("?" for _ in values))
            return functions.execute(sql, values).fetchone()[0]

        return call

    def _sql_keyword(self, name, functions):
        return lambda: functions.execute("select {}(?)".format(_SQL_KEYWORDS[name]), self._sql_now(name)).fetchone()[0]

    def _sql_now(self, name):
        """Return the current time as the one argument of a function of SQL."""
        place = self.interposer.place()
        is_held = self.is_pinned(place)
        self.note(place, "SQLite's {}".format(name), None, is_held)
        return (_format_time(self.interposer.epoch) if is_held else "now",)

    def _replace_datetime(self, module):
        """Replace datetime, a class in C, by a subclass whose constructors return instances of the original."""
        original_class = module.datetime

        class Meta(type):
            def __instancecheck__(cls, instance):
                return isinstance(instance, original_class)

            def __subclasscheck__(cls, subclass):
                return issubclass(subclass, original_class)

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
            ("utcnow", lambda timestamp: from_time(timestamp, utc).replace(tzinfo=None)),
        ):
            self._replace_constructor(datetime, original_class, name, give)
        copyreg.pickle(original_class, lambda moment: (datetime,) + moment.__reduce__()[1:])
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


def _format_time(seconds, form=time.strftime, split=time.gmtime):
    """Return a time as SQL takes it. form, split: the functions of the module `time` before they are replaced."""
    return form("%Y-%m-%d %H:%M:%S", split(seconds))
