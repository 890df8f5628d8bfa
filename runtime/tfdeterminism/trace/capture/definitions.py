"""The definitions of a recorder's key ids, each of which is written before its first record."""

from ..schema import format as trace_format


class Definitions(object):
    """The definitions of one process. Thread-safe.

    lock: the recorder's; backend: the backends.Backend that knows the traits of op types, such as "random".
    """

    def __init__(self, lock, backend):
        self.count = 0
        self._lock, self._backend = lock, backend
        self._types = {}  # type of op: (its traits, its attributes)
        self._unwritten = []
        self._traces, self._labels = {}, {}

    def new_key(self, **fields):
        """Add a definition and return its id."""
        return self.add(**fields)["id"]

    def add(self, **fields):
        """Return a definition with a new id."""
        with self._lock:
            definition = self._make(self.count, fields)
            self.count += 1
            self._unwritten.append(definition)
            return definition

    def redefine(self, number, **fields):
        """Replace the definition of an id."""
        self.write_again(self._make(number, fields))

    def _make(self, number, fields):
        """Return a definition with the traits and attributes of its op type."""
        op_type = fields["op"]
        type_info = self._types.get(op_type)
        if type_info is None:
            type_info = self._types[op_type] = sorted(self._backend.traits(op_type)), self._backend.attributes(op_type)
        attrs = dict(type_info[1], **fields.get("attrs", {})) if type_info[1] else fields.get("attrs", {})
        return trace_format.definition(number, **dict(fields, traits=type_info[0], attrs=attrs))

    def write_again(self, definition):
        """Write a copy of a definition that has changed, and may change again."""
        with self._lock:
            self._unwritten.append(dict(definition))

    def pop_unwritten(self):
        """Return the definitions that were not written yet, and clear their list."""
        unwritten, self._unwritten = self._unwritten, []
        return unwritten

    def next_trace_number(self, function):
        """Return how many functions of this name were traced before."""
        return self._count(self._traces, function)

    def unique_label(self, name):
        """Return a unique name for a variable."""
        number = self._count(self._labels, name)
        return "{}#{}".format(name, number) if number else name

    def _count(self, numbers, name):
        with self._lock:
            number = numbers.get(name, 0)
            numbers[name] = number + 1
            return number
