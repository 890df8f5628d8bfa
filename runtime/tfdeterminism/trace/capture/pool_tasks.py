"""The tasks of thread pools, by whose names the records of their threads are kept.

Which thread runs which task is chance, and so is which task runs first. The records of a task therefore have the
task's name, which counts the submissions. A thread that the program starts is a task, too. All records of a task belong
to the step in which it began, because how far other threads are meanwhile is chance.
"""

import threading

from ...wrap import Wrappers
from .. import backends


class _Local(threading.local):
    """The state of a thread; the class attributes are the defaults."""

    task = None  # type: PoolTask | None
    is_known = False  # whether task was looked up


_local = _Local()
_FRAMEWORKS = frozenset(backends.packages())


class PoolTask(object):
    """A task. label: its name; step: in which it began; counts: of the ops of each name; state: data of the probes."""

    def __init__(self, label, step):
        self.label, self.step = label, step
        self.counts, self.state = {}, {}


def current_task():
    """Return the PoolTask of this thread, or None for the main thread and those of a framework."""
    if not _local.is_known:
        _local.is_known = True
        thread = threading.current_thread()
        if hasattr(thread, "_tfdet_step"):
            _local.task = PoolTask(thread.name, thread._tfdet_step)
    return _local.task


def thread_name():
    """Return the thread's name in a trace: that of its task, "" for the main thread and those of a framework."""
    task = current_task()
    if task is not None:
        return task.label
    thread = threading.current_thread()
    is_unnamed = thread is threading.main_thread() or isinstance(thread, threading._DummyThread)
    return "" if is_unnamed else thread.name


def name_in_task(name):
    """Return the name of a value that is not an op's output, with the name of the task that made it."""
    task = current_task()
    return name if task is None else "{} of {}".format(name, task.label)


def _task(name_and_step, function):
    """Return the function as a task of that (label, step), or unchanged if it is None."""
    if name_and_step is None:
        return function

    def run(*args, **kwargs):
        previous, _local.task = current_task(), PoolTask(*name_and_step)
        try:
            return function(*args, **kwargs)
        finally:
            _local.task = previous

    return run


class PoolTasks(object):
    """The wrappers around the functions that submit tasks.

    recording: a recording.Recording, whose recorder counts the tasks of a step.
    """

    def __init__(self, recording):
        self._recording = recording
        self._wrappers = Wrappers()

    def import_hooks(self):
        """Return {module: function to call with it when it is imported}."""
        return {"concurrent.futures.thread": self._watch_futures, "multiprocessing.pool": self._watch_pools}

    def open(self):
        self._wrappers.wrap(threading.Thread, "start", self._start)

    def close(self):
        self._wrappers.undo()

    def _next_task(self, pool):
        """Return (label, step) of the next task of pools of this name, or None if nothing is recorded."""
        recorder, parent = self._recording.recorder, current_task()
        if recorder is None or not recorder.active:
            return None
        label = "task {} of {}".format(recorder.eager.next_occurrence("task", pool), pool)
        return label if parent is None else "{} in {}".format(label, parent.label), recorder.steps.number

    def _start(self, original, thread):
        recorder = self._recording.recorder
        if type(thread).__module__.partition(".")[0] not in _FRAMEWORKS:
            thread._tfdet_step = 0 if recorder is None else recorder.steps.number
        return original(thread)

    def _watch_futures(self, module):
        self._wrappers.wrap(module.ThreadPoolExecutor, "submit", self._submit)

    def _submit(self, original, executor, *args, **kwargs):
        if args:  # without arguments, submit() itself raises
            args = (_task(self._next_task(type(executor).__name__), args[0]),) + args[1:]
        return original(executor, *args, **kwargs)

    def _watch_pools(self, module):
        def apply_async(original, pool, func, *args, **kwargs):
            name_and_step = self._next_task("ThreadPool") if isinstance(pool, module.ThreadPool) else None
            return original(pool, _task(name_and_step, func), *args, **kwargs)

        def map_elements(original, pool, func, iterable, *args, **kwargs):
            name_and_step = self._next_task("ThreadPool") if isinstance(pool, module.ThreadPool) else None
            if name_and_step is not None:
                func = _as_element_tasks(name_and_step, func, module.starmapstar in args)
                iterable = _enumerate(iterable)
            return original(pool, func, iterable, *args, **kwargs)

        self._wrappers.wrap(module.Pool, "apply_async", apply_async)
        for name in ("_map_async", "imap", "imap_unordered"):
            self._wrappers.wrap(module.Pool, name, map_elements)


def _as_element_tasks(name_and_step, function, unpacked):
    """Return a function of a pair (number, element) that runs each element as a task.

    unpacked: whether an element is a tuple of arguments.
    """
    def task(number):
        return _task((name_and_step[0].replace(" of ", ".{} of ".format(number), 1), name_and_step[1]), function)

    if unpacked:
        return lambda number, element: task(number)(*element)
    return lambda numbered: task(numbered[0])(numbered[1])


def _enumerate(iterable):
    return list(enumerate(iterable)) if hasattr(iterable, "__len__") else enumerate(iterable)
