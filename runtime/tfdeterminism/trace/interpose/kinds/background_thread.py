"""Threads that run freely beside the rest of the program, in a loop until they are told to end.

No order of starts reaches them. Pinned: the thread does nothing, which is tried last, and only if the pin of the kind
completion waited for a thread in vain. Cannot be pinned: threads of C++ code. Example: a thread that averages the
weights whenever it can.
"""

import functools

from .base import Kind, no_value

# `what` of a ledger's row: a thread did not end when it was waited for, because it computes, or waits itself.
RUNS_ON, WAITS = "runs on", "waits"
JOINED = "joined"  # the program waited for its end


class BackgroundThread(Kind):
    name, label, coarseness = "background-thread", "a thread that runs freely beside the program", 6

    def open(self):
        self.interposer.imports.add({"threading": self._hook_threads})

    def _hook_threads(self, module):
        def start(place, original, thread):
            thread.run = _do_nothing
            original(thread)

        self.replace(module.Thread, "start", start, no_value, unless=self.is_called_by_library)
        original = module.Thread.join

        @functools.wraps(original)
        def join(thread, *args, **kwargs):
            place = self.interposer.place_of_start(thread)
            if place and self.interposer.is_called_by_user():
                self.note(place, JOINED)
            return original(thread, *args, **kwargs)

        module.Thread.join = join


def _do_nothing():
    pass
