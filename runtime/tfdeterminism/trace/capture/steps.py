"""Where a training step ends: where the program says so, or else where its optimizers and gradients do."""

import threading

from ..interpose import variables
from . import pool_tasks


class Steps(object):
    """window: (first, end) of the steps to record, or None for all. lock: the recorder's; ended(): called with it
    held at the end of each step. Thread-safe: a task ends no step, and all that it does is of the one in which it was
    begun, see the tasks module. The program is ended once its main thread has taken as many steps as
    variables.STOP_AFTER allows: SystemExit is raised where the last one ends."""

    def __init__(self, lock, window, ended):
        self.window = window
        self._lock = lock
        self._ended = ended
        self._at_edge = []
        self._most = variables.steps_allowed()
        self.reset()

    def reset(self):
        """In a fork: its steps are its own."""
        self.last = 0
        self._manual = self._applied = self._gradient = self._ends = False

    @property
    def number(self):
        """Of what this thread does now. last: of what the program itself does."""
        task = pool_tasks.current_task()
        return self.last if task is None else task.step

    def is_recorded(self):
        return self.window is None or self.window[0] <= self.number < self.window[1]

    def starts_later(self, steps=None):
        """Does the window that is recorded only begin later? steps: in at most so many."""
        left = 0 if self.window is None else self.window[0] - self.number
        return left > 0 and (steps is None or left <= steps)

    def add_window_callback(self, function):
        """function(begins) is called when the first step of the window begins, and when its last has ended."""
        self._at_edge.append(function)

    def end_step(self):
        """trace.step(): from now on the program says where a step ends, and nobody guesses."""
        task = pool_tasks.current_task()
        if task is not None:
            task.step += 1
            task.counts.clear()
            return
        with self._lock:
            # The program's first step may have been guessed already, and then this is its end too.
            if self._manual or not self.last:
                self._advance()
            self._manual = True
        self._stop_after_last()

    def on_optimizer_applied(self):
        """An optimizer has updated its variables, and the caller is back in Python."""
        self._end_by_optimizer()
        self._stop_after_last()

    def _end_by_optimizer(self):
        if pool_tasks.current_task() is not None:
            return
        with self._lock:
            self._applied = True
            self._gradient = False
            if not self._manual:
                self._advance()

    def on_gradient(self):
        """A gradient is about to be computed: without an optimizer this is what separates steps."""
        if pool_tasks.current_task() is not None:
            return
        with self._lock:
            if self._gradient and not self._applied and not self._manual:
                self._advance()
            self._gradient = True
        self._stop_after_last()

    def on_loop_iteration(self):
        """One iteration of a loop in a graph that holds a training step has run."""
        self._ends = self._ends and pool_tasks.current_task() is not None
        self._end_by_optimizer()  # the graph goes on: no exception may leave it

    def on_function_run(self):
        """A graph function that holds a training step has run; the step ends with the outermost call."""
        if pool_tasks.current_task() is None:
            self._ends = True

    def on_call_end(self):
        """An outermost call of a graph function has ended."""
        if self._ends and pool_tasks.current_task() is None:
            self._ends = False
            self._end_by_optimizer()
        self._stop_after_last()

    def _stop_after_last(self):
        is_main = threading.current_thread() is threading.main_thread() and pool_tasks.current_task() is None
        if self._most is not None and self.last >= self._most and is_main:
            raise SystemExit(0)

    def _advance(self):
        if self.window is not None and self.last == self.window[1] - 1:
            self._on_window_boundary(False)
        self._ended()
        self.last += 1
        if self.window is not None and self.last == self.window[0]:
            self._on_window_boundary(True)

    def _on_window_boundary(self, begins):
        for function in self._at_edge:
            function(begins)
