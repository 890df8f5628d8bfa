"""The kernel's random numbers, and the generators that are seeded from them.

Pinned: each process (by its position) and line has a stream, so that neither pids nor the order of threads that draw
at different lines matter; the global generators of Python, NumPy and the framework get a seed when they are imported;
/dev/urandom, opened by Python, returns such a stream; so do SQLite's random() and randomblob(). Cannot be pinned: C
code that asks the kernel itself, os.open of /dev/urandom. Example: ``numpy.random.default_rng()``.
"""

import builtins
import functools
import hashlib
import io
import itertools
import os
import sys

from .base import Kind, no_value

FIRST_DRAW = "first draw"  # `what` of a ledger's row: from an unseeded global generator; the value is the line
LATER_DRAW = "later-draw"  # kind of a row whose `what` is another line that draws from an unseeded global generator
TEMPORARY_NAME = "temporary-name"  # kind of a row whose `what` is a name that tempfile made
TEMPORARY = "a temporary name"  # `what` of a row at the line that got such a name
GLOBAL = "global:"  # prefix of the place of a global generator
_BLOCK = 64  # bytes of a digest
_TEMPORARY_NAMES = 1000  # that a process notes
_TEMPORARY_FRAMES = 6  # between the user's line and the next name
_DRAWING_LINES = 20  # of a global generator that a process notes
_SQL_DRAWS = 100  # of a line, a draw for each row, that a process notes if they are not pinned
_DEVICES = ("/dev/urandom", "/dev/random")
_PYTHON_DRAWS = (
    "random randint randrange choice choices shuffle sample uniform gauss normalvariate getrandbits betavariate"
)
_NUMPY_DRAWS = (
    "rand randn randint random random_sample choice shuffle permutation normal uniform standard_normal binomial "
    "poisson beta gamma exponential multivariate_normal"
)


class _Device(io.RawIOBase):
    """A file of random bytes. read(size): returns them."""

    def __init__(self, read):
        self._read = read

    def readable(self):
        return True

    def readinto(self, buffer):
        buffer[:] = self._read(len(buffer))
        return len(buffer)


class RandomNumbers(Kind):
    name, label = "random", "random numbers without a seed"

    def open(self):
        self._counts = {}
        self._seeded, self._drawn_from = set(), set()  # global generators that the program seeded, or used unseeded
        self._globals = {}  # {global generator: function that seeds it}
        self._urandom, self._sql_draws = os.urandom, {}
        self.replace(os, "urandom", lambda place, original, size: self._stream(place, size))
        if hasattr(os, "getrandom"):
            self.replace(os, "getrandom", lambda place, original, size, flags=0: self._stream(place, size))
        self._replace_open()
        self.interposer.imports.add(
            {
                "random": self._hook_random,
                "numpy.random": self._hook_numpy,
                "uuid": self._hook_uuid,
                "tempfile": self._hook_tempfile,
                "sqlite3": self._hook_sqlite,
            }
        )

    def _stream(self, place, size):
        stream = self.interposer.stream  # the task of a pool that this thread runs, else the process's position
        count = self._counts[stream, place] = self._counts.get((stream, place), 0) + 1
        key = "{}|{}|{}|".format(stream, place, count).encode()
        blocks = [hashlib.sha512(key + str(number).encode()).digest() for number in range(size // _BLOCK + 1)]
        return b"".join(blocks)[:size]

    def _replace_open(self):
        """Replace builtins.open and io.open, which are the same function; pathlib uses the latter."""
        self.replace(
            builtins,
            "open",
            lambda place, original, *_, **__: io.BufferedReader(_Device(lambda size: self._stream(place, size))),
            no_value,
            unless=lambda *args, **_: not args or str(args[0]) not in _DEVICES,
        )
        io.open = builtins.open

    def number(self, place):
        """Return the next pinned random number at a place, of 63 bits."""
        return int.from_bytes(self._stream(place, 8), "little") >> 1

    # Python and NumPy

    def _hook_random(self, module):
        seed = self._wrap_seed(module.Random.seed, module._inst)
        module.Random.seed, module.seed = seed, functools.partial(seed, module._inst)
        module.seed()
        self._globals["random"] = module.seed
        # The module's own fork handler calls the original seed().
        os.register_at_fork(after_in_child=lambda: self._on_fork(module))  # novm
        self.note_first_draws(module, "random", _PYTHON_DRAWS)

    def _on_fork(self, module):
        """Forget the program's seed, because Python reseeds its generator in a fork."""
        self._seeded.discard("random")
        self._drawn_from.clear()
        module.seed()

    def _wrap_seed(self, original, global_generator):
        def seed(generator, a=None, *args, **kwargs):
            is_global = generator is global_generator
            if a is not None:
                self._seeded.update(["random"] if is_global else [])
                return original(generator, a, *args, **kwargs)
            place = (
                GLOBAL + "random"
                if is_global and not self.interposer.is_called_by_user()
                else self.interposer.place()
            )
            is_held = self.is_pinned(place)
            original(generator, self.number(place) if is_held else None)
            self.note(place, "random.Random()", generator.getstate()[1][1], is_held)

        return seed

    def _hook_numpy(self, module):
        self.begin_global(
            "numpy", lambda number: module.seed(number & 0xFFFFFFFF), lambda: int(module.get_state()[1][1])
        )
        self.note_seeds(module, "numpy", ("seed", "set_state"))
        self.note_first_draws(module, "numpy", _NUMPY_DRAWS)

    def _hook_uuid(self, module):
        self.replace(
            module,
            "uuid1",
            lambda place, *_, **__: module.UUID(bytes=self._stream(place, 16), version=1),
            str,
        )

    def _hook_tempfile(self, module):
        """Note the names, because a pinned one is free in a first run alone, unless the next begins without it."""
        original, numbers = module._RandomNameSequence.__next__, itertools.count()

        def next_name(names):
            name = original(names)
            if next(numbers) < _TEMPORARY_NAMES:
                self.interposer.note(TEMPORARY_NAME, "-", name)
                if self.interposer.is_called_by_user(_TEMPORARY_FRAMES):
                    place = self.interposer.place()
                    self.note(place, TEMPORARY, name, self.is_pinned(place))
            return name

        module._RandomNameSequence.__next__ = next_name

    def _hook_sqlite(self, module):
        """Replace two functions of SQL in each connection."""
        original = module.connect

        @functools.wraps(original)
        def connect(*args, **kwargs):
            connection = original(*args, **kwargs)
            connection.create_function(
                "random", 0, lambda: int.from_bytes(self._sql_bytes(8, "random"), "little", signed=True)
            )
            connection.create_function(
                "randomblob", 1, lambda size: self._sql_bytes(max(int(size or 0), 1), "randomblob")
            )
            return connection

        module.connect = module.dbapi2.connect = connect

    def _sql_bytes(self, size, function):
        frame = sys._getframe(2)
        line = frame.f_code, frame.f_lineno
        count = self._sql_draws[line] = self._sql_draws.get(line, 0) + 1
        if count > _SQL_DRAWS and self.name not in self.interposer.pins:
            return self._urandom(size)
        place = self.interposer.place()
        is_held = self.is_pinned(place)
        self.note(place, "SQLite's {}()".format(function), held=is_held)
        return self._stream(place, size) if is_held else self._urandom(size)

    # Global generators of any library

    def begin_global(self, generator, seed, state):
        """Note a global generator whose library has been imported.

        seed(number): seeds it; state(): returns its state.
        """
        self._globals[generator] = seed
        place = GLOBAL + generator
        is_held = self.is_pinned(place)
        if is_held:
            seed(self.number(place))
        self.note(place, "begins", state(), is_held)

    def note_seeds(self, owner, generator, names):
        """Wrap functions that seed the global generator."""

        def wrap(original):
            @functools.wraps(original)
            def seeds(*args, **kwargs):
                self._seeded.update([generator] if args or kwargs else [])
                return original(*args, **kwargs)

            return seeds

        for name in names:
            setattr(owner, name, wrap(getattr(owner, name)))

    def note_first_draws(self, owner, generator, names):
        """Wrap functions that draw from the global generator: lines that draw without a seed are noted, each once."""
        lines = set()

        def wrap(original):
            @functools.wraps(original)
            def draw(*args, **kwargs):
                if (
                    generator not in self._seeded
                    and (len(lines) < _DRAWING_LINES or generator not in self._drawn_from)
                    and kwargs.get("seed") is None
                    and kwargs.get("generator") is None
                ):
                    frame = sys._getframe(1)
                    line = frame.f_code, frame.f_lineno
                    if line not in lines or generator not in self._drawn_from:
                        lines.add(line)
                        self._note_draw(generator)
                return original(*args, **kwargs)

            return draw

        for name in names.split():
            if hasattr(owner, name):
                setattr(owner, name, wrap(getattr(owner, name)))

    def on_task(self):
        for generator, seed in self._globals.items():
            place = GLOBAL + generator
            if generator not in self._seeded and self.is_pinned(place):
                seed(self.number(place))
                self._seeded.discard(generator)  # this call is not the program's

    def _note_draw(self, generator):
        place = self.interposer.place()
        if place == "-" or "(import)" in place:
            return
        if generator in self._drawn_from:
            self.interposer.note(LATER_DRAW, GLOBAL + generator, place)
            return
        self._drawn_from.add(generator)
        self.note(GLOBAL + generator, FIRST_DRAW, place)
