"""What a recorder's key ids mean: given out once, written before the first record that has them."""

from ..schema import format as trace_format


class Definitions(object):
    """lock: the recorder's. Thread-safe."""

    def __init__(self, lock):
        self.count = 0
        self._lock = lock
        self._unwritten = []
        self._traces, self._labels = {}, {}

    def new_key(self, **fields):
        """A fresh id, to be defined now."""
        return self.add(**fields)["id"]

    def add(self, **fields):
        """The definition of a fresh id."""
        with self._lock:
            made = trace_format.definition(self.count, **fields)
            self.count += 1
            self._unwritten.append(made)
            return made

    def redefine(self, number, **fields):
        """What is known of this id now."""
        self.renew(trace_format.definition(number, **fields))

    def renew(self, definition):
        """The same as a definition that may change again."""
        with self._lock:
            self._unwritten.append(dict(definition))

    def take_unwritten(self):
        """Those that no file holds yet."""
        found, self._unwritten = self._unwritten, []
        return found

    def trace_number(self, function):
        """How many functions of this name were traced before."""
        return self._count(self._traces, function)

    def label(self, name):
        """A name for a variable that no other has."""
        number = self._count(self._labels, name)
        return "{}#{}".format(name, number) if number else name

    def _count(self, numbers, name):
        with self._lock:
            number = numbers.get(name, 0)
            numbers[name] = number + 1
            return number
