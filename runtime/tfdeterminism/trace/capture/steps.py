"""The ends of training steps: where the program calls step(), or else where its optimizers and gradients run."""

import threading

from ..interpose import variables
from . import pool_tasks


class Steps(object):
    """The counter of training steps. Thread-safe.

    window: (first, end) of the steps to record, or None for all; lock: the recorder's; ended(): called with the lock
    held at the end of each step. A task of a pool ends no step; all its records belong to the step in which it began
    (see pool_tasks). When the main thread has run as many steps as variables.STOP_AFTER allows, SystemExit ends the
    program.
    """

    def __init__(self, lock, window, ended):
        self.window = window
        self._lock = lock
        self._ended = ended
        self._at_edge = []
        self._most = variables.steps_allowed()
        self.reset()

    def reset(self):
        """Restart the count in a fork."""
        self.last = 0
        # Whether: the program called step(); an optimizer ran; a gradient followed; a graph function with a step ran.
        self._manual = self._applied = self._gradient = self._ends = False

    @property
    def number(self):
        """The step of the current thread's task, or of the program (`last`) outside of tasks."""
        task = pool_tasks.current_task()
        return self.last if task is None else task.step

    def is_recorded(self):
        return self.window is None or self.window[0] <= self.number < self.window[1]

    def is_before_window(self, steps=None):
        """Return whether the recorded window is still to begin. steps: within at most so many steps, None for any."""
        remaining = 0 if self.window is None else self.window[0] - self.number
        return remaining > 0 and (steps is None or remaining <= steps)

    def add_window_callback(self, function):
        """Register function(begins), called when the window's first step begins and its last has ended."""
        self._at_edge.append(function)

    def end_step(self):
        """End a step, as the program's call of trace.step() says; no step is inferred from now on."""
        task = pool_tasks.current_task()
        if task is not None:
            task.step += 1
            task.counts.clear()  # occurrences of ops are counted from 0 in each step
            return
        with self._lock:
            # The end of the first step may have been inferred already, and then this call means the same end.
            if self._manual or not self.last:
                self._advance()
            self._manual = True
        self._stop_after_last()

    def on_optimizer_applied(self):
        """End a step after an optimizer has updated its variables and returned to Python."""
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
        """End a step before a gradient is computed, if the program has no optimizer."""
        if pool_tasks.current_task() is not None:
            return
        with self._lock:
            if self._gradient and not self._applied and not self._manual:
                self._advance()
            self._gradient = True
        self._stop_after_last()

    def on_loop_iteration(self):
        """End a step after an iteration of a graph's loop that contains a training step."""
        # This ends the step that a function in the loop has noted.
        self._ends = self._ends and pool_tasks.current_task() is not None
        self._end_by_optimizer()  # the graph goes on: no exception may leave it

    def on_function_run(self):
        """Note that a graph function with a training step has run; the outermost call ends the step."""
        if pool_tasks.current_task() is None:
            self._ends = True

    def on_call_end(self):
        """End a noted step after an outermost call of a graph function."""
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
