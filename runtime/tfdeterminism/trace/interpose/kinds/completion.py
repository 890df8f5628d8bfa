"""The order in which threads, tasks and processes finish.

Pinned: results come in the order of submission, and a thread, fork or process that is started runs to its end before
its starter continues, unless it waits itself or needs longer than the whole program did. The main thread puts into a
queue, and gets from one, when all other threads wait, or all processes that it started, if these share the queue.
Varied: threads, processes and tasks begin later at random, and threads switch often. Cannot be pinned: threads of C++
code, which worker runs which task, pipes, a thread that runs until it is told to end. Example:
``for future in as_completed(futures)``.
"""

import contextlib
import functools
import itertools
import os
import sys
import threading
import time
import weakref
import zlib

from .background_thread import RUNS_ON, WAITS, BackgroundThread
from .base import Kind, no_value

_NANOSLEEP = ("230", "35")  # numbers of system calls on x86-64: a child that sleeps does not wait for its parent
_PATIENCE = 0.3  # seconds without work after which a thread counts as one that waits
_QUEUE_PATIENCE = 0.05  # the same at each call of a queue, of which a program makes many
_AFTER_THE_LONGEST = 1.0  # seconds, once a start was waited for in vain: it runs until it is told to end
_MARKER = "a-thread-runs-on"  # a file: in an earlier run a start was waited for in vain
_QUEUE_CALLS = ("put", "get", "put_nowait", "get_nowait")
# Ends of names of calls in the ledger: gives up after a time, or at once; returns with the first task; calls back.
GIVES_UP, BY_FIRST, CALLS_BACK = " with a timeout", " for the first", " with a callback"
_POOL_WAIT = 10  # seconds that a pool's task is waited for
_PROXY_FRAMES = 2  # a manager's proxy calls by a function of its own
_TASK_WAIT = 2.0  # seconds that an asyncio task is waited for: it may wait for a later one
_DELAYS = (0.0, 0.0, 0.02, 0.06)  # seconds, of varied starts
_SHORT_INTERVAL = 1e-5  # seconds that a thread of a varied run computes at a stretch
_clock, _sleep, _listdir = time.monotonic, time.sleep, os.listdir
_own_thread = getattr(threading, "get_native_id", os.getpid)  # other pins replace it in its module


class _Ordered(set):
    """A set of futures that is iterated in the order of their submission."""

    def __iter__(self):
        return iter(sorted(set.__iter__(self), key=_number))


def _number(future):
    return getattr(future, "_tfdet_number", 0)


class Completion(Kind):
    """The kind.  self.replace(owner, name, pinned, value, unless, varied) puts a wrapper in place of owner.name.

    pinned(place, original, ...) is called in its place where the pin holds at the user's line `place`, varied(seed,
    original, ...) where the order is varied, and the original if unless(...) or else.
    """

    name, label, coarseness = "completion", "the order in which threads, tasks or processes finish", 2

    def open(self):
        self._sleepers = 0
        self._longest = float(self.interposer.settings["longest_wait"])
        self._marker = os.path.join(self.interposer.settings["kept"], _MARKER)
        if os.path.exists(self._marker):
            self._longest = min(self._longest, _AFTER_THE_LONGEST)
        self._longest_in_queues = self._longest
        self._starts, self._last_task = 0, None
        time.sleep = self._counted_sleep
        self.replace(os, "fork", self._settle_fork, no_value, unless=self.is_called_by_library)
        if self.seed is not None:
            sys.setswitchinterval(_SHORT_INTERVAL)
        self.interposer.imports.add(  # each function is called with its module, when the program imports that
            {
                "threading": self._hook_threads,
                "concurrent.futures._base": self._hook_futures,
                "concurrent.futures.thread": self._hook_submit,
                "queue": self._hook_queues,
                "multiprocessing.process": self._hook_processes,
                "multiprocessing.queues": self._hook_shared_queues,
                "multiprocessing.managers": self._hook_managers,
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
        """Return the seconds by which the next start is delayed."""
        self._starts += 1
        return _DELAYS[zlib.crc32("{}|{}".format(seed, self._starts).encode()) % len(_DELAYS)]

    def _delayed(self, seed, original, *args, **kwargs):
        """Delay a start; for `varied`."""
        _sleep(self._delay(seed))
        return original(*args, **kwargs)

    def _delayed_thread(self, seed, original, thread):
        """Start a thread that waits before it works, without delaying the caller; for `varied`."""
        thread.run = _after(self._delay(seed), thread.run)
        return original(thread)

    def _delayed_task(self, seed, original, pool, function, *args, **kwargs):
        return original(pool, _after(self._delay(seed), function), *args, **kwargs)

    # Starts: the caller waits until the started thread or process has ended, or waits itself

    def _settle_thread(self, place, thread):
        """Wait until a started thread has ended; one that has not is noted."""
        runs_on = self._settle(lambda: not thread.is_alive(), self._own_work)
        if thread.is_alive():
            self.interposer.note(BackgroundThread.name, place, RUNS_ON if runs_on else WAITS)
        if runs_on:
            with self.interposer.without_notes(), contextlib.suppress(OSError), open(self._marker, "w"):
                pass

    def _settle(self, has_ended, work, pids=("self",), patience=_PATIENCE, longest=None):
        """Wait until a started thread, process or task has ended, or waits itself; return whether it did neither.

        has_ended(): returns whether it has ended; work(): returns a number that rises while it works; pids: processes
        that it may be in; patience: the seconds without work after which it counts as one that waits; longest: the
        seconds after which it is no longer waited for, None for the setting "longest_wait".
        """
        begin = idle_since = _clock()
        previous = work()
        while not has_ended():
            _sleep(0.002)
            now, current = _clock(), work()
            if current != previous or self._sleepers:
                previous, idle_since = current, now
            if now - begin > (longest or self._longest):
                self._longest = min(self._longest, _AFTER_THE_LONGEST)
                return True
            if now - idle_since > patience and not any(map(_has_running_thread, pids)):
                break
        return False

    def _own_work(self):
        """Return the CPU time of the other threads in hundredths of a second, coarse enough to hide the query's own."""
        used = time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID) - time.clock_gettime(
            time.CLOCK_THREAD_CPUTIME_ID
        )
        return int(used * 100)

    def _hook_threads(self, module):
        def start(place, original, thread):
            original(thread)
            self._settle_thread(place, thread)

        def is_left_alone(thread):  # a timer acts after a time; waiting for it would let nothing else happen before
            return isinstance(thread, module.Timer) or self.is_called_by_library()

        self.replace(module.Thread, "start", start, unless=is_left_alone, varied=self._delayed_thread)

    def _hook_queues(self, module):
        references, original_init = [], module.Queue.__init__  # a list is safe between threads

        @functools.wraps(original_init)
        def __init__(queue, *args, **kwargs):
            original_init(queue, *args, **kwargs)
            references.append(weakref.ref(queue))

        def after_the_others(place, original, *args, **kwargs):
            others_wait = functools.partial(_others_wait_for, references)
            if self._settle(others_wait, self._own_work, patience=_QUEUE_PATIENCE, longest=self._longest_in_queues):
                self._longest_in_queues = min(self._longest_in_queues, _AFTER_THE_LONGEST) / 2  # calls may be many
            return original(*args, **kwargs)

        module.Queue.__init__ = __init__
        for name in _QUEUE_CALLS:
            what = functools.partial(_name_of_queue_call, name)
            self.replace(module.Queue, name, after_the_others, no_value, unless=self._is_called_elsewhere, what=what)

    def _is_called_elsewhere(self, *args):
        """Return whether the caller is a library, or another thread than the main one."""
        return threading.current_thread() is not threading.main_thread() or self.is_called_by_library()

    def _hook_processes(self, module):
        def start(place, original, process):
            original(process)
            self._settle(lambda: not process.is_alive(), lambda: _work_of(process.pid), [process.pid])

        self.replace(
            module.BaseProcess, "start", start, unless=self.is_called_by_library, varied=self._delayed
        )

    def _settle_fork(self, place, original):
        pid = original()
        if pid:
            self._settle(lambda: _has_ended(pid), lambda: _work_of(pid), [pid])
        return pid

    def _hook_shared_queues(self, module):
        """Let a process use a queue when the processes that it started wait; these use it at once."""
        for owner in (module.Queue, module.JoinableQueue, module.SimpleQueue):
            for name in _QUEUE_CALLS:
                if name in vars(owner):
                    what = functools.partial(_name_of_queue_call, name)
                    self.replace(
                        owner, name, self._after_the_processes, no_value, unless=self._has_no_children, what=what
                    )

    def _hook_managers(self, module):
        """Do the same with queues of a manager, whose proxies send the name of the method."""

        def is_other_call(proxy, method, *args, **kwargs):
            return (
                method not in _QUEUE_CALLS
                or proxy._token.typeid not in ("Queue", "JoinableQueue")
                or self._has_no_children(depth=_PROXY_FRAMES)
            )

        def what(proxy, method, args=(), kwds=None):
            return _name_of_queue_call(method, proxy, *args, **(kwds or {}))

        self.replace(
            module.BaseProxy, "_callmethod", self._after_the_processes, no_value, unless=is_other_call, what=what
        )

    def _after_the_processes(self, place, original, *args, **kwargs):
        children = _children()
        pids = [child.pid for child in children] + ["self"]  # the thread that feeds a queue is in this process
        self._settle(
            lambda: not any(child.is_alive() for child in children),
            lambda: [self._own_work()] + [_work_of(child.pid) for child in children],
            pids,
            _QUEUE_PATIENCE,
        )
        return original(*args, **kwargs)

    def _has_no_children(self, *args, depth=1):
        """Return whether this process started none, or the caller is a library."""
        return not _children() or not self.interposer.is_called_by_user(depth)

    def _hook_submit(self, module):
        def submit(place, original, *args, **kwargs):
            future = original(*args, **kwargs)
            self._settle(future.done, self._own_work)
            return future

        self.replace(module.ThreadPoolExecutor, "submit", submit, no_value, varied=self._delayed_task)

    # Results, in the order of submission

    def _hook_futures(self, module):
        numbers, original_init, wait = itertools.count(1), module.Future.__init__, module.wait

        def __init__(future):
            original_init(future)
            future._tfdet_number = next(numbers)

        module.Future.__init__ = __init__

        def as_completed(place, original, fs, timeout=None):
            for future in sorted(set(fs), key=_number):
                wait([future], timeout)
                yield future

        def ordered_wait(place, original, fs, timeout=None, return_when=module.ALL_COMPLETED):
            fs = set(fs)
            if return_when == module.FIRST_COMPLETED and fs:
                done = original([min(fs, key=_number)], timeout)[0]
                return module.DoneAndNotDoneFutures(_Ordered(done), _Ordered(fs - done))
            return module.DoneAndNotDoneFutures(*map(_Ordered, original(fs, timeout, return_when)))

        self.replace(module, "as_completed", as_completed, no_value)
        def what(fs, timeout=None, return_when=module.ALL_COMPLETED):
            by_first = "" if return_when == module.ALL_COMPLETED else BY_FIRST
            return "wait" + (by_first if timeout is None else GIVES_UP)

        self.replace(module, "wait", ordered_wait, no_value, what=what)

    def _hook_pool(self, module):
        def apply_and_wait(place, original, *args, **kwargs):
            result = original(*args, **kwargs)
            result.wait(_POOL_WAIT)
            return result

        self.replace(
            module.Pool,
            "imap_unordered",
            lambda place, original, pool, *args, **kwargs: pool.imap(*args, **kwargs),
            no_value,
        )

        def what(pool, func, args=(), kwds=None, callback=None, error_callback=None):
            return "apply_async" + (CALLS_BACK if callback else "")

        self.replace(module.Pool, "apply_async", apply_and_wait, no_value, varied=self._delayed, what=what)

    def _hook_asyncio(self, module):
        def in_order(place, original, fs, **kwargs):
            return iter([module.ensure_future(awaitable) for awaitable in fs])

        def gather_in_turn(place, original, *coroutines, **kwargs):
            async def in_turn():
                tasks = []
                for coroutine in coroutines:
                    tasks.append(module.ensure_future(coroutine))
                    await module.wait(tasks[-1:], timeout=_TASK_WAIT)
                return await original(*tasks, **kwargs)

            return module.ensure_future(in_turn())

        self.replace(module, "as_completed", in_order, no_value)
        self.replace(module, "gather", gather_in_turn, no_value, unless=self.is_called_by_library)
        for name in ("create_task", "ensure_future"):
            if hasattr(module, name):
                self._hook_task_maker(module, name)

    def _hook_task_maker(self, owner, name):
        """Make each task that a function creates from its last argument wait for the previous task."""

        def create_task(place, original, *args, **kwargs):
            from asyncio import coroutines, wait  # not imported yet when the hook is installed

            if not args or not coroutines.iscoroutine(args[-1]):
                return original(*args, **kwargs)
            previous, self._last_task = self._last_task, None

            async def after_the_last():
                if previous is not None and not previous.done():
                    await wait([previous], timeout=_TASK_WAIT)
                return await args[-1]

            self._last_task = original(*(args[:-1] + (after_the_last(),)), **kwargs)
            return self._last_task

        self.replace(owner, name, create_task, no_value, unless=self.is_called_by_library)

    def order_argument(self, owner, method, argument):
        """Wrap a method whose results are unordered if `argument` is False."""
        original, kind = getattr(owner, method), self

        @functools.wraps(original)
        def call(*args, **kwargs):
            if kwargs.get(argument) is False:
                place = kind.interposer.place()
                kwargs[argument] = kind.is_pinned(place)
                kind.note(place, argument + "=False", None, kwargs[argument])
            return original(*args, **kwargs)

        setattr(owner, method, call)


def _name_of_queue_call(name, queue, *args, **kwargs):
    """Return the name of a call of a queue, which says if it gives up."""
    waits = args[1:] if name == "put" else args  # whether to wait, and how long
    block, timeout = (waits + (True, None)[len(waits) :])[:2]
    does_wait = kwargs.get("block", block) and kwargs.get("timeout", timeout) is None
    return name if does_wait or name.endswith("_nowait") else name + GIVES_UP


def _after(seconds, function):
    """Return a function that waits before it calls another one."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        _sleep(seconds)
        return function(*args, **kwargs)

    return call


def _children():
    """Return the processes that this one started by multiprocessing and that were not joined yet."""
    module = sys.modules.get("multiprocessing.process")
    return [] if module is None else list(module._children)


def _others_wait_for(references):
    """Return whether all other Python threads wait for one of some queues. references: weak ones to the queues."""
    queues = [queue for queue in (reference() for reference in list(references)) if queue is not None]
    conditions = [condition for queue in queues for condition in (queue.not_empty, queue.not_full)]
    return sum(len(getattr(condition, "_waiters", ())) for condition in conditions) >= threading.active_count() - 1


def _fields_of(task):
    """Return the fields behind the name in a task's line of /proc, its state first.

    task: "PID", or "PID/task/THREAD".  OSError if it has ended.
    """
    with open("/proc/{}/stat".format(task)) as lines:
        return lines.read().rpartition(")")[2].split()


def _has_ended(pid):
    """Return whether a child has ended; one that its parent has not waited for is a zombie."""
    try:
        return _fields_of(pid)[0] in "ZX"
    except (OSError, IndexError):
        return True


def _has_running_thread(pid):
    """Return whether another thread of a process runs, or is ready to.

    On a busy machine a thread that gets no CPU time does not necessarily wait.
    """
    own_id = str(_own_thread())
    try:
        threads = _listdir("/proc/{}/task".format(pid))
    except OSError:  # the process has ended
        return False
    for thread in threads:
        try:
            state = _fields_of("{}/task/{}".format(pid, thread))[0]
        except (OSError, IndexError):
            continue
        if state in "RD" and thread != own_id:
            return True
    return False


def _work_of(pid):
    """Return a number that rises while another process works, or sleeps: its CPU time, plus the time if it sleeps."""
    try:
        fields = _fields_of(pid)
        with open("/proc/{}/syscall".format(pid)) as lines:
            call = lines.read().split()[:1]
    except (OSError, IndexError):
        return 0
    return int(fields[11]) + int(fields[12]) + (_clock() if call and call[0] in _NANOSLEEP else 0)
