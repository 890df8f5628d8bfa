"""The order in which threads, tasks and processes finish.

Pinned: results come in the order of submission, and what is started runs to its end before its starter goes on,
unless it waits itself. Varied: threads, processes and tasks begin later by chance, and threads change often.
Cannot be pinned: threads of C++ code, who of a pool takes which task.
Example: ``for future in as_completed(futures)``.
"""

import functools
import itertools
import os
import sys
import threading
import time
import zlib

from .base import Kind, nothing

_NANOSLEEP = ("230", "35")  # numbers of system calls on x86-64: a child that sleeps does not wait for us
_PATIENCE = 0.3  # seconds without work after which a thread counts as one that waits
_LONGEST = 600.0  # seconds that one start is waited for
_POOL_WAIT = 10  # seconds that a pool's task is waited for
_TASK_WAIT = 2.0  # seconds that an asyncio task is waited for: it may wait for a later one
_DELAYS = (0.0, 0.0, 0.02, 0.06)  # seconds, of varied starts
_SHORT_INTERVAL = 1e-5  # seconds that a thread of a varied run computes at a stretch
_clock, _sleep, _listdir = time.monotonic, time.sleep, os.listdir


class _Ordered(set):
    """A set of futures that is iterated in the order of their submission."""

    def __iter__(self):
        return iter(sorted(set.__iter__(self), key=_number))


def _number(future):
    return getattr(future, "_tfdet_number", 0)


class Completion(Kind):
    name, words, coarse = "completion", "the order in which threads, tasks or processes finish", 2

    def open(self):
        self._sleepers = 0
        self._starts, self._last_task = 0, None
        time.sleep = self._counted_sleep
        if self.seed is not None:
            sys.setswitchinterval(_SHORT_INTERVAL)
        self.interposer.imports.add(
            {
                "threading": self._hook_threads,
                "concurrent.futures._base": self._hook_futures,
                "concurrent.futures.thread": self._hook_submit,
                "multiprocessing.process": self._hook_processes,
                "multiprocessing.pool": self._hook_pool,
                "asyncio.tasks": self._hook_asyncio,
                "asyncio.base_events": lambda module: self._hook_task_maker(module.BaseEventLoop, "create_task"),
                "asyncio.taskgroups": lambda module: self._hook_task_maker(module.TaskGroup, "create_task"),
            }
        )

    def _counted_sleep(self, seconds):
        self._sleepers += 1
        try:
            _sleep(seconds)
        finally:
            self._sleepers -= 1

    def _delay(self, seed):
        """Seconds by which the next start is delayed."""
        self._starts += 1
        return _DELAYS[zlib.crc32("{}|{}".format(seed, self._starts).encode()) % len(_DELAYS)]

    def _delayed(self, seed, original, *args, **kwargs):
        """For `varied`: a start that comes a little later."""
        _sleep(self._delay(seed))
        return original(*args, **kwargs)

    def _delayed_thread(self, seed, original, thread):
        """For `varied`: a thread that waits before it works; its starter goes on."""
        thread.run = _after(self._delay(seed), thread.run)
        return original(thread)

    def _delayed_task(self, seed, original, pool, function, *args, **kwargs):
        return original(pool, _after(self._delay(seed), function), *args, **kwargs)

    # Starts: until what was started has ended, or waits itself

    def _settle(self, ended, work, pid="self"):
        """ended(): has it?; work(): a number that rises while it works; pid: of the process that it runs in."""
        begun = idle = _clock()
        last = work()
        while not ended():
            _sleep(0.002)
            now, done = _clock(), work()
            if done != last or self._sleepers:
                last, idle = done, now
            if now - idle > _PATIENCE and not _has_running_thread(pid) or now - begun > _LONGEST:
                break

    def _own_work(self):
        """CPU time of the other threads, in hundredths of a second: looking costs some itself."""
        used = time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID) - time.clock_gettime(
            time.CLOCK_THREAD_CPUTIME_ID
        )
        return int(used * 100)

    def _hook_threads(self, module):
        def start(place, original, thread):
            original(thread)
            self._settle(lambda: not thread.is_alive(), self._own_work)

        self.replace(module.Thread, "start", start, unless=self.is_called_by_library, varied=self._delayed_thread)

    def _hook_processes(self, module):
        def start(place, original, process):
            original(process)
            self._settle(lambda: not process.is_alive(), lambda: _work_of(process.pid), process.pid)

        self.replace(
            module.BaseProcess, "start", start, unless=self.is_called_by_library, varied=self._delayed
        )

    def _hook_submit(self, module):
        def submit(place, original, *args, **kwargs):
            future = original(*args, **kwargs)
            self._settle(future.done, self._own_work)
            return future

        self.replace(module.ThreadPoolExecutor, "submit", submit, nothing, varied=self._delayed_task)

    # Results, in the order of submission

    def _hook_futures(self, module):
        numbers, begin, wait = itertools.count(1), module.Future.__init__, module.wait

        def __init__(future):
            begin(future)
            future._tfdet_number = next(numbers)

        module.Future.__init__ = __init__

        def as_completed(place, original, fs, timeout=None):
            for future in sorted(set(fs), key=_number):
                wait([future], timeout)
                yield future

        def waited(place, original, fs, timeout=None, return_when=module.ALL_COMPLETED):
            fs = set(fs)
            if return_when == module.FIRST_COMPLETED and fs:
                done = original([min(fs, key=_number)], timeout)[0]
                return module.DoneAndNotDoneFutures(_Ordered(done), _Ordered(fs - done))
            return module.DoneAndNotDoneFutures(*map(_Ordered, original(fs, timeout, return_when)))

        self.replace(module, "as_completed", as_completed, nothing)
        self.replace(module, "wait", waited, nothing)

    def _hook_pool(self, module):
        def applied(place, original, *args, **kwargs):
            result = original(*args, **kwargs)
            result.wait(_POOL_WAIT)
            return result

        self.replace(
            module.Pool,
            "imap_unordered",
            lambda place, original, pool, *args, **kwargs: pool.imap(*args, **kwargs),
            nothing,
        )
        self.replace(module.Pool, "apply_async", applied, nothing, varied=self._delayed)

    def _hook_asyncio(self, module):
        def in_order(place, original, fs, **kwargs):
            return iter([module.ensure_future(one) for one in fs])

        def gathered(place, original, *coroutines, **kwargs):
            async def in_turn():
                tasks = []
                for one in coroutines:
                    tasks.append(module.ensure_future(one))
                    await module.wait(tasks[-1:], timeout=_TASK_WAIT)
                return await original(*tasks, **kwargs)

            return module.ensure_future(in_turn())

        self.replace(module, "as_completed", in_order, nothing)
        self.replace(module, "gather", gathered, nothing, unless=self.is_called_by_library)
        for name in ("create_task", "ensure_future"):
            if hasattr(module, name):
                self._hook_task_maker(module, name)

    def _hook_task_maker(self, owner, name):
        """A function or method that makes a task of its last argument: it begins when the one before has ended."""

        def created(place, original, *args, **kwargs):
            from asyncio import coroutines, wait  # not yet there when it is hooked

            if not args or not coroutines.iscoroutine(args[-1]):
                return original(*args, **kwargs)
            before, self._last_task = self._last_task, None

            async def after_the_last():
                if before is not None and not before.done():
                    await wait([before], timeout=_TASK_WAIT)
                return await args[-1]

            self._last_task = original(*(args[:-1] + (after_the_last(),)), **kwargs)
            return self._last_task

        self.replace(owner, name, created, nothing, unless=self.is_called_by_library)

    def order_argument(self, owner, method, argument):
        """A method whose results come as they are ready if `argument` is false."""
        original, kind = getattr(owner, method), self

        @functools.wraps(original)
        def call(*args, **kwargs):
            if kwargs.get(argument) is False:
                place = kind.interposer.place()
                kwargs[argument] = kind.holds(place)
                kind.note(place, argument + "=False", None, kwargs[argument])
            return original(*args, **kwargs)

        setattr(owner, method, call)


def _after(seconds, function):
    """A function that waits, and then does what another does."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        _sleep(seconds)
        return function(*args, **kwargs)

    return call


def _has_running_thread(pid):
    """Does another thread of it run, or would with a processor? On a busy machine no work done is no sign of
    waiting."""
    mine = str(threading.get_native_id() if hasattr(threading, "get_native_id") else os.getpid())  # novm
    for thread in _listdir("/proc/{}/task".format(pid)):
        try:
            with open("/proc/{}/task/{}/stat".format(pid, thread)) as lines:
                state = lines.read().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            continue
        if state in "RD" and thread != mine:
            return True
    return False


def _work_of(pid):
    """Of another process: its CPU time, and time itself while it sleeps."""
    try:
        with open("/proc/{}/stat".format(pid)) as lines:
            fields = lines.read().rpartition(")")[2].split()
        with open("/proc/{}/syscall".format(pid)) as lines:
            call = lines.read().split()[:1]
    except (OSError, IndexError):
        return 0
    return int(fields[11]) + int(fields[12]) + (_clock() if call and call[0] in _NANOSLEEP else 0)
