"""One process's interposer: its position in the tree of processes, the user's lines, and which pins hold there."""

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
from .variables import VARIABLE, current_interposer, position

if TYPE_CHECKING:  # for type comments alone
    from types import FrameType  # noqa: F401

UNKNOWN = "-"  # the place of what no line of the user's has asked for
_HERE = os.path.dirname(os.path.abspath(__file__))
_PROJECT = os.path.dirname(os.path.dirname(_HERE))  # tfdeterminism
_STARTED_AT = "_tfdet_started_at"  # of a thread: the place that started it
_getpid, _kill = os.getpid, os.kill  # before they are pinned
_FRAMES = 80  # that are looked at for a line of the user's


def begin():
    """Interpose in this process, as VARIABLE says: called by the hook, in the package of the name variables.NAME."""
    current_interposer.append(Interposer(json.loads(os.environ[VARIABLE]), position()))
    current_interposer[0].open()


class Interposer(object):
    """told: what is the same in each process of a run:

    root: folder of the program, to which places are relative; project: a copy of this one in it; out: folder for
    ledgers; epoch: seconds since 1970 that
    pinned clocks begin with; pins: {kind: None for everywhere, or the places at which it is pinned}; vary: {kind:
    seed}; frameworks: names of the modules that can be interposed. position: of this process.
    """

    def __init__(self, told, position):
        self.root, self.pins, self.vary, self.epoch = (
            told["root"] + os.sep,
            told["pins"],
            told["vary"],
            told["epoch"],
        )
        self.told, self.position = told, position
        self._ours = (_PROJECT + os.sep, told.get("project", _PROJECT) + os.sep)  # the program may run a copy of us
        self.ledger = Ledger(told["out"], position)
        self.imports = ImportHook()
        self.kinds = {}
        self.sets = UserSets(self)
        self._heard = {}  # event: functions
        self._users, self._local = {}, threading.local()
        self._libraries = tuple(
            sorted(
                {
                    folder + os.sep
                    for name in ("stdlib", "platstdlib", "purelib", "platlib")
                    for one in [sysconfig.get_paths()[name]]
                    for folder in (one, os.path.realpath(one))
                }
            )
        )

    def open(self):
        from . import kinds
        from .children import Children
        from .tasks import Tasks

        self.imports.open()
        if sys.version_info >= (3, 8):
            sys.addaudithook(_audit_hook(self._heard))  # novm
        for kind in kinds.ALL:
            self.kinds[kind.name] = kind(self)
            self.kinds[kind.name].open()
        Children(self).open()
        Tasks(self).open()
        self.imports.add({name: self._framework_imported(name) for name in self.told["frameworks"]})
        self.imports.add({"threading": self._note_starts})
        self.sets.open()
        atexit.register(self.close)

    def close(self):
        """Write the ledger: at the end of the process."""
        try:
            self.ledger.write()
        except OSError as error:
            sys.stderr.write("tfdeterminism.trace: the ledger was not written: {}\n".format(error))

    def write_when_terminated(self):
        """A pool ends workers that wait or work by SIGTERM: what they noted is written before that ends them."""
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        before = signal.set_wakeup_fd(write_end)
        if before != -1:  # the program's own
            signal.set_wakeup_fd(before)
            return
        signal.signal(signal.SIGTERM, _leave_to_thread)
        _thread.start_new_thread(self._end_when_terminated, (read_end, ctypes.CDLL(None)))

    def _end_when_terminated(self, read_end, libc):
        """In a thread: the main one hears of no signal that comes just before it waits for a lock. read_end: of the
        pipe into which Python writes the numbers of signals."""
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
        if signal.getsignal(signal.SIGTERM) is _leave_to_thread:  # which is not in this process
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    # Events

    def hear(self, events, handler):
        """Call handler(event, args) when Python tells an audit event (3.8 and later)."""
        for event in events:
            self._heard.setdefault(event, []).append(handler)

    # Tasks

    @property
    def stream(self):
        """What pinned values follow from: the task that this thread works on, else the process's position."""
        return getattr(self._local, "task", None) or self.position

    @contextlib.contextmanager
    def task(self, number, in_process):
        """This thread works on a task of a pool. in_process: a worker process has global generators of its own."""
        before = getattr(self._local, "task", None)
        self._local.task = number
        for kind in self.kinds.values() if in_process else ():
            kind.on_task()
        try:
            yield
        finally:
            self._local.task = before

    # Places

    def place(self):
        """ "FILE:LINE" of the user's innermost frame, " (import)" behind it where an import lies between. In a thread
        that runs no line of the user's, of the line that started it; UNKNOWN for none."""
        frame, imports = self.caller(), False
        for _ in range(_FRAMES):
            if frame is None:
                break
            name = frame.f_code.co_filename
            if self.is_user(name):
                return "{}:{}{}".format(self._relative(name), frame.f_lineno, " (import)" if imports else "")
            imports = imports or name.startswith("<frozen importlib")
            frame = frame.f_back
        thread = threading._active.get(_thread.get_ident())  # type: ignore[attr-defined]  # makes none, unlike its kin
        return getattr(thread, _STARTED_AT, UNKNOWN)

    def _note_starts(self, module):
        original = module.Thread.start

        @functools.wraps(original)
        def start(thread):
            setattr(thread, _STARTED_AT, self.place())
            return original(thread)

        module.Thread.start = start

    def caller(self, ours=None):
        """The innermost frame that is not ours: other wrappers of this project may lie around the call as well."""
        ours = ours or self._ours
        frame = sys._getframe(1)  # type: FrameType | None
        while frame is not None and frame.f_code.co_filename.startswith(ours):
            frame = frame.f_back
        return frame

    def direct_caller(self):
        """The innermost frame that is not of this package."""
        return self.caller(_HERE + os.sep)

    def is_called_by_user(self, depth=1):
        """Is one of the innermost `depth` frames that are not ours the user's?"""
        frame = self.caller()
        for _ in range(depth):
            if frame is None:
                return False
            if self.is_user(frame.f_code.co_filename):
                return True
            frame = frame.f_back
        return False

    def is_user(self, path):
        """Is it a file of the user's program, not of Python, an installed package or ours?"""
        known = self._users.get(path)
        if known is None:
            full = os.path.abspath(path)
            known = self._users[path] = (
                path[:1] != "<"
                and not full.startswith(self._libraries)
                and not full.startswith(self._ours)
                and "site-packages" not in full
            )
        return known

    def _relative(self, path):
        full = os.path.abspath(path)
        return full[len(self.root) :] if full.startswith(self.root) else full

    # Pins and the ledger

    def holds(self, kind, place):
        """Is this kind pinned at this place?"""
        only = self.pins.get(kind, ())
        return only is None or place in only

    def note(self, kind, place, what, value=None, held=False):
        if not getattr(self._local, "busy", False):
            with self.unnoted():
                self.ledger.note(kind, place, what, value, held)

    @contextlib.contextmanager
    def unnoted(self):
        """What this thread asks for in between is not noted: we ask, not the program."""
        self._local.busy = True
        try:
            yield
        finally:
            self._local.busy = False

    # Frameworks

    def _framework_imported(self, name):
        def imported(module):
            backends = _project_module("tfdeterminism.trace.backends")
            try:
                backends.find(name).interpose(self.kinds, module)
            except (AttributeError, ImportError, TypeError) as error:  # a version that we do not know
                sys.stderr.write("tfdeterminism.trace: {} is not interposed: {}\n".format(name, error))

        return imported


def _leave_to_thread(number, frame):
    """The handler of SIGTERM in the main thread: another one ends the process."""


def _audit_hook(heard):
    """Few of the events that Python tells are heard: the rest passes by as cheaply as can be."""
    get = heard.get

    def hook(event, args):
        for handler in get(event, ()):
            handler(event, args)

    return hook


def _project_module(name):
    """A module of this project, which lies on the program's path or not."""
    sys.path.insert(0, os.path.dirname(_PROJECT))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(os.path.dirname(_PROJECT))
