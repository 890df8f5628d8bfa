"""The interposer of a process: its position in the tree of processes, the user's lines, and the pins at them.

It wraps functions whose results may differ from run to run. Their calls are noted in a ledger; a pinned call gets the
same result in every run.
"""

import _thread
import atexit
import contextlib
import ctypes
import functools
import importlib
import json
import os
import signal
import sys
import sysconfig
import threading
from typing import TYPE_CHECKING

from .import_hook import ImportHook
from .ledger import Ledger
from .user_sets import UserSets
from .variables import SETTINGS_VARIABLE, STARTED_AT, current_interposer, position

if TYPE_CHECKING:  # for type comments alone
    from types import FrameType  # noqa: F401

UNKNOWN = "-"  # the place of a call that no line of the user's has made
_HERE = os.path.dirname(os.path.abspath(__file__))
_PROJECT = os.path.dirname(os.path.dirname(_HERE))  # tfdeterminism
_CHILD = " (child)"
_STARTED_AT = "_tfdet_started_at"  # attribute of a thread: the place that started it
_getpid, _kill = os.getpid, os.kill  # before they are pinned
_FRAMES = 80  # maximum of frames that are searched for a line of the user's


def begin():
    """Interpose in this process with SETTINGS_VARIABLE; the hook calls this in the package variables.NAME."""
    current_interposer.append(Interposer(json.loads(os.environ[SETTINGS_VARIABLE]), position()))
    current_interposer[0].open()


class Interposer(object):
    """The interposer of one process.

    settings: a dict that is the same in each process of a run. root: folder of the program, to which places are
    relative; project: copy of this project in it; out: folder for ledgers; kept: folder for copies of files outside of
    the program's folder, made before they are written; epoch: seconds since 1970 at which pinned clocks begin; pins:
    {kind: None for everywhere, or the places at which it is pinned}; vary: {kind that gets other values: their seed};
    frameworks: names of the modules that can be interposed; longest_wait: text of the seconds for which a started
    thread or process is waited for. position: of this process.
    """

    def __init__(self, settings, position):
        self.root, self.pins, self.vary, self.epoch = (
            settings["root"] + os.sep,
            settings["pins"],
            settings["vary"],
            settings["epoch"],
        )
        self.settings, self.position = settings, position
        started_at = os.environ.get(STARTED_AT)
        self._started_at = started_at.partition(_CHILD)[0] + _CHILD if started_at else UNKNOWN
        self._ours = (_PROJECT + os.sep, settings.get("project", _PROJECT) + os.sep)  # the program may run a copy of us
        self.ledger = Ledger(settings["out"], position)
        self.imports = ImportHook()
        self.kinds = {}
        self.sets = UserSets(self)
        self._audit_handlers = {}  # event: functions
        self._users, self._local = {}, threading.local()
        self._libraries = tuple(
            sorted(
                {
                    folder + os.sep
                    for name in ("stdlib", "platstdlib", "purelib", "platlib")
                    for path in [sysconfig.get_paths()[name]]
                    for folder in (path, os.path.realpath(path))
                }
            )
        )

    def open(self):
        from . import kinds
        from .children import Children
        from .tasks import PoolTasks

        self.imports.open()
        if sys.version_info >= (3, 8):
            sys.addaudithook(_audit_hook(self._audit_handlers))  # novm
        for kind in kinds.ALL:
            self.kinds[kind.name] = kind(self)
            self.kinds[kind.name].open()
        Children(self).open()
        PoolTasks(self).open()
        self.imports.add({name: self._framework_hook(name) for name in self.settings["frameworks"]})
        self.imports.add({"threading": self._wrap_thread_start})
        self.sets.open()
        atexit.register(self.close)

    def close(self):
        """Write the ledger at the end of the process."""
        try:
            self.ledger.write()
        except OSError as error:
            sys.stderr.write("tfdeterminism.trace: the ledger was not written: {}\n".format(error))

    def write_when_terminated(self):
        """Write the ledger before SIGTERM ends the process, as a pool does with its workers."""
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        previous_fd = signal.set_wakeup_fd(write_end)
        if previous_fd != -1:  # the program uses it itself
            signal.set_wakeup_fd(previous_fd)
            return
        signal.signal(signal.SIGTERM, _leave_to_thread)
        _thread.start_new_thread(self._end_when_terminated, (read_end, ctypes.CDLL(None)))

    def _end_when_terminated(self, read_end, libc):
        """Wait for SIGTERM in a thread, and end the process.

        The main thread does not handle a signal that arrives just before it waits for a lock. read_end: of the pipe
        into which Python writes the numbers of signals.
        """
        while True:
            is_ended = signal.SIGTERM in bytearray(os.read(read_end, 64))
            if is_ended and signal.getsignal(signal.SIGTERM) is _leave_to_thread:
                break
        self.close()
        libc.signal(signal.SIGTERM, None)  # Python's own call is for the main thread alone
        _kill(_getpid(), signal.SIGTERM)

    def on_fork(self, position):
        self.position = position
        self._local = threading.local()
        self.ledger.on_fork(position)
        if signal.getsignal(signal.SIGTERM) is _leave_to_thread:  # a fork does not have that thread
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    # Events

    def on_audit_event(self, events, handler):
        """Call handler(event, args) for each of these audit events (Python 3.8 and later)."""
        for event in events:
            self._audit_handlers.setdefault(event, []).append(handler)

    # Tasks

    @property
    def stream(self):
        """The source of pinned values: the task of this thread, else the position of the process."""
        return getattr(self._local, "task", None) or self.position

    @contextlib.contextmanager
    def task(self, number, in_process):
        """Run the block as a task of a pool. in_process: whether it runs in a worker process."""
        previous = getattr(self._local, "task", None)
        self._local.task = number
        for kind in self.kinds.values() if in_process else ():
            kind.on_task()
        try:
            yield
        finally:
            self._local.task = previous

    # Places

    def place(self):
        """Return "FILE:LINE" of the user's innermost frame, with " (import)" if an import lies between.

        In a thread that runs no line of the user's files it is the line that started the thread; in a process, such as
        `python -c`, the line that started it, with " (child)". UNKNOWN if there is none.
        """
        frame, imports = self.caller(), False
        for _ in range(_FRAMES):
            if frame is None:
                break
            name = frame.f_code.co_filename
            if self.is_user(name):
                return "{}:{}{}".format(self._relative(name), frame.f_lineno, " (import)" if imports else "")
            imports = imports or name.startswith("<frozen importlib")
            frame = frame.f_back
        # Unlike current_thread(), this creates no dummy thread.
        thread = threading._active.get(_thread.get_ident())  # type: ignore[attr-defined]
        return getattr(thread, _STARTED_AT, self._started_at)

    @staticmethod
    def place_of_start(thread):
        """Return the place that started a thread; None for the main thread, and for one that was not started."""
        return getattr(thread, _STARTED_AT, None)

    def _wrap_thread_start(self, module):
        original = module.Thread.start

        @functools.wraps(original)
        def start(thread):
            setattr(thread, _STARTED_AT, self.place())
            return original(thread)

        module.Thread.start = start

    def caller(self, folders=None):
        """Return the innermost frame outside of this project, whose other wrappers may surround the call, too."""
        folders = folders or self._ours
        frame = sys._getframe(1)  # type: FrameType | None
        while frame is not None and frame.f_code.co_filename.startswith(folders):
            frame = frame.f_back
        return frame

    def direct_caller(self):
        """Return the innermost frame outside of this package."""
        return self.caller(_HERE + os.sep)

    def is_called_by_project(self):
        """Return whether the caller is another part of this project, which asks for itself."""
        frame = self.direct_caller()
        return frame is not None and frame.f_code.co_filename.startswith(self._ours)

    def is_called_by_user(self, depth=1):
        """Return whether one of the innermost `depth` frames outside of this project is the user's."""
        frame = self.caller()
        for _ in range(depth):
            if frame is None:
                return False
            if self.is_user(frame.f_code.co_filename):
                return True
            frame = frame.f_back
        return False

    def is_user(self, path):
        """Return whether a file belongs to the user's program, not to Python, a package or this project."""
        is_user_file = self._users.get(path)
        if is_user_file is None:
            full = os.path.abspath(path)
            is_user_file = self._users[path] = (
                path[:1] != "<"
                and not full.startswith(self._libraries)
                and not full.startswith(self._ours)
                and "site-packages" not in full
            )
        return is_user_file

    def _relative(self, path):
        full = os.path.abspath(path)
        return full[len(self.root) :] if full.startswith(self.root) else full

    # Pins and the ledger

    def is_pinned(self, kind, place):
        """Return whether a kind is pinned at a place."""
        places = self.pins.get(kind, ())
        return places is None or place in places

    def note(self, kind, place, what, value=None, held=False):
        """Note a call of the function `what`. value: what the program got; held: whether that was a pinned value."""
        if not getattr(self._local, "busy", False):
            with self.without_notes():
                self.ledger.note(kind, place, what, value, held)

    @contextlib.contextmanager
    def without_notes(self):
        """Do not note the calls of this thread in the block, because they are not the program's."""
        self._local.busy = True
        try:
            yield
        finally:
            self._local.busy = False

    # Frameworks

    def _framework_hook(self, name):
        def on_import(module):
            backends = _import_project_module("tfdeterminism.trace.backends")
            try:
                backends.find(name).interpose(self.kinds, module)
            except (AttributeError, ImportError, TypeError) as error:  # an unknown version of the framework
                sys.stderr.write("tfdeterminism.trace: {} is not interposed: {}\n".format(name, error))

        return on_import


def _leave_to_thread(number, frame):
    """Do nothing on SIGTERM in the main thread: another thread ends the process."""


def _audit_hook(handlers):
    """Return the audit hook, which ignores events without a handler as cheaply as possible."""
    get = handlers.get

    def hook(event, args):
        for handler in get(event, ()):
            handler(event, args)

    return hook


def _import_project_module(name):
    """Import a module of this project, which may not be on the program's path."""
    sys.path.insert(0, os.path.dirname(_PROJECT))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(os.path.dirname(_PROJECT))
