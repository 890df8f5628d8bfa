"""What a recorder's key ids mean: given out once, written before the first record that has them."""

from ..schema import format as trace_format


class Definitions(object):
    """lock: the recorder's; backend: the backends.Backend that says what an op's type means. Thread-safe."""

    def __init__(self, lock, backend):
        self.count = 0
        self._lock, self._backend = lock, backend
        self._types = {}  # type of op: (its traits, its attributes)
        self._unwritten = []
        self._traces, self._labels = {}, {}

    def new_key(self, **fields):
        """A fresh id, to be defined now."""
        return self.add(**fields)["id"]

    def add(self, **fields):
        """The definition of a fresh id."""
        with self._lock:
            made = self._made(self.count, fields)
            self.count += 1
            self._unwritten.append(made)
            return made

    def redefine(self, number, **fields):
        """What is known of this id now."""
        self.write_again(self._made(number, fields))

    def _made(self, number, fields):
        """A definition with what its type says of it."""
        op_type = fields["op"]
        known = self._types.get(op_type)
        if known is None:
            known = self._types[op_type] = sorted(self._backend.traits(op_type)), self._backend.attributes(op_type)
        attrs = dict(known[1], **fields.get("attrs", {})) if known[1] else fields.get("attrs", {})
        return trace_format.definition(number, **dict(fields, traits=known[0], attrs=attrs))

    def write_again(self, definition):
        """The same as a definition that may change again."""
        with self._lock:
            self._unwritten.append(dict(definition))

    def pop_unwritten(self):
        """Those that no file holds yet."""
        found, self._unwritten = self._unwritten, []
        return found

    def next_trace_number(self, function):
        """How many functions of this name were traced before."""
        return self._count(self._traces, function)

    def unique_label(self, name):
        """A name for a variable that no other has."""
        number = self._count(self._labels, name)
        return "{}#{}".format(name, number) if number else name

    def _count(self, numbers, name):
        with self._lock:
            number = numbers.get(name, 0)
            numbers[name] = number + 1
            return number
