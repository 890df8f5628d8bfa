"""Tasks of pools: pinned values in a task follow from its number, because it is chance which worker runs it."""

import functools
import inspect

from .variables import current


class PoolTask(object):
    """A function that a pool calls. number: of the task in the order of submission, behind its submitter's position."""

    def __init__(self, number, function, in_process):
        self._number, self._function, self._in_process = number, function, in_process
        functools.update_wrapper(self, function, ("__name__", "__qualname__", "__doc__", "__module__"), ())

    def __call__(self, *args, **kwargs):
        interposer = current()
        if interposer is None:
            return self._function(*args, **kwargs)
        with interposer.task(self._number, self._in_process):
            return self._function(*args, **kwargs)


class PoolTasks(object):
    """The wrappers around the functions that submit tasks. interposer: of this process."""

    def __init__(self, interposer):
        self._interposer = interposer
        self._count = 0

    def open(self):
        self._interposer.imports.add(
            {
                "multiprocessing.pool": self._hook_pool,
                "concurrent.futures.thread": lambda module: self._wrap_executor(
                    module.ThreadPoolExecutor, False
                ),
                "concurrent.futures.process": lambda module: self._wrap_executor(
                    module.ProcessPoolExecutor, True
                ),
            }
        )

    def _task(self, function, in_process):
        self._count += 1
        return PoolTask("{}t{}".format(self._interposer.position, self._count), function, in_process)

    def _hook_pool(self, module):
        original, apply_async = module.Pool._get_tasks, module.Pool.apply_async

        def get_tasks(function, iterator, size):
            for _, batch in original(function, iterator, size):
                yield self._task(function, True), batch

        def apply_task(pool, func, *args, **kwargs):
            return apply_async(pool, self._task(func, True), *args, **kwargs)

        module.Pool._get_tasks, module.Pool.apply_async = (
            staticmethod(get_tasks),
            functools.wraps(apply_async)(apply_task),
        )
        self._wrap_initializer(module.Pool, True)

    def _wrap_initializer(self, owner, in_process):
        """Make all workers of a pool begin with the same pinned values."""
        original = owner.__init__
        signature = inspect.signature(original)

        @functools.wraps(original)
        def __init__(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            if bound.arguments.get("initializer") is not None:
                bound.arguments["initializer"] = self._task(bound.arguments["initializer"], in_process)
            return original(*bound.args, **bound.kwargs)

        owner.__init__ = __init__

    def _wrap_executor(self, owner, in_process):
        self._wrap_initializer(owner, in_process)
        original = owner.submit

        @functools.wraps(original)
        def submit(executor, fn, *args, **kwargs):
            return original(executor, self._task(fn, in_process), *args, **kwargs)

        owner.submit = submit
