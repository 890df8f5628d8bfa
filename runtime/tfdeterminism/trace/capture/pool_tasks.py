"""What a pool of threads is given to do. Which of its threads takes which task is chance, and so is which is done
first: what a task does is recorded under the name of the task, by the order in which they were handed in. What the
program starts as a thread of its own is a task, too. All of a task is of the step in which it was begun: how far the
others have come meanwhile is chance.
"""

import threading

from ...wrap import Wrappers
from .. import backends


class _Local(threading.local):
    """What no thread has set is of each."""

    task = None  # type: PoolTask | None
    is_known = False


_local = _Local()
_FRAMEWORKS = frozenset(backends.packages())


class PoolTask(object):
    """label: its name; step: in which it was begun; counts: how often what was done in it; state: what else is known
    of it."""

    def __init__(self, label, step):
        self.label, self.step = label, step
        self.counts, self.state = {}, {}


def current_task():
    """The PoolTask that this thread does, or None: the main one, and a framework's own, have none."""
    if not _local.is_known:
        _local.is_known = True
        thread = threading.current_thread()
        if hasattr(thread, "_tfdet_step"):
            _local.task = PoolTask(thread.name, thread._tfdet_step)
    return _local.task


def thread_name():
    """What this thread is called in a trace: as its task; the main one, and a framework's own, have no name."""
    task = current_task()
    if task is not None:
        return task.label
    thread = threading.current_thread()
    plain = thread is threading.main_thread() or isinstance(thread, threading._DummyThread)
    return "" if plain else thread.name


def name_in_task(name):
    """The name of a value that is no op's, with that of the task which has made it."""
    task = current_task()
    return name if task is None else "{} of {}".format(name, task.label)


def _task(begun, function):
    """The function, as a task of that (label, step); the function alone where it has none."""
    if begun is None:
        return function

    def run(*args, **kwargs):
        before, _local.task = current_task(), PoolTask(*begun)
        try:
            return function(*args, **kwargs)
        finally:
            _local.task = before

    return run


class PoolTasks(object):
    """recording: a recording.Recording, whose recorder counts the tasks of a step."""

    def __init__(self, recording):
        self._recording = recording
        self._wrappers = Wrappers()

    def import_hooks(self):
        """{module: what is to be called with it when it is imported}."""
        return {"concurrent.futures.thread": self._watch_futures, "multiprocessing.pool": self._watch_pools}

    def open(self):
        self._wrappers.wrap(threading.Thread, "start", self._start)

    def close(self):
        self._wrappers.undo()

    def _begun(self, pool):
        """(label, step) of the next task that is handed in to pools of this name in this step, or in this task; None
        where nothing is recorded."""
        recorder, above = self._recording.recorder, current_task()
        if recorder is None or not recorder.active:
            return None
        label = "task {} of {}".format(recorder.eager.next_occurrence("task", pool), pool)
        return label if above is None else "{} in {}".format(label, above.label), recorder.steps.number

    def _start(self, original, thread):
        recorder = self._recording.recorder
        if type(thread).__module__.partition(".")[0] not in _FRAMEWORKS:
            thread._tfdet_step = 0 if recorder is None else recorder.steps.number
        return original(thread)

    def _watch_futures(self, module):
        self._wrappers.wrap(module.ThreadPoolExecutor, "submit", self._submit)

    def _submit(self, original, executor, *args, **kwargs):
        if args:  # else it says by itself what is wrong
            args = (_task(self._begun(type(executor).__name__), args[0]),) + args[1:]
        return original(executor, *args, **kwargs)

    def _watch_pools(self, module):
        def apply_async(original, pool, func, *args, **kwargs):
            begun = self._begun("ThreadPool") if isinstance(pool, module.ThreadPool) else None
            return original(pool, _task(begun, func), *args, **kwargs)

        def elements(original, pool, func, iterable, *args, **kwargs):
            begun = self._begun("ThreadPool") if isinstance(pool, module.ThreadPool) else None
            if begun is not None:
                func, iterable = _of_elements(begun, func, module.starmapstar in args), _numbered(iterable)
            return original(pool, func, iterable, *args, **kwargs)

        self._wrappers.wrap(module.Pool, "apply_async", apply_async)
        for name in ("_map_async", "imap", "imap_unordered"):
            self._wrappers.wrap(module.Pool, name, elements)


def _of_elements(begun, function, unpacked):
    """A function of an element with its number, each a task. unpacked: is an element what is to be unpacked?"""
    def task(number):
        return _task((begun[0].replace(" of ", ".{} of ".format(number), 1), begun[1]), function)

    if unpacked:
        return lambda number, element: task(number)(*element)
    return lambda numbered: task(numbered[0])(numbered[1])


def _numbered(iterable):
    return list(enumerate(iterable)) if hasattr(iterable, "__len__") else enumerate(iterable)
