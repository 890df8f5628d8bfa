"""The trace of a process that may record nothing: its file is created with the first record."""


class LazyWriter(object):
    """A buffer with the methods of a writer.Writer.

    make(): creates the Writer; before(): returns the calls, [(method, arguments), ...], that the file begins with.
    """

    def __init__(self, make, before=list):
        self._make, self._before = make, before
        self._writer = None
        self._waiting = []  # buffered (method, arguments)

    @property
    def path(self):
        return self._open().path

    def define(self, definitions):
        self._buffer_call("define", definitions)

    def source(self, lines):
        self._buffer_call("source", lines)

    def note(self, kind, text):
        self._buffer_call("note", kind, text)

    def time(self, seconds):
        self._buffer_call("time", seconds)

    def value(self, payload):
        """payload: a tensor's values, packed by tensor_values."""
        self._buffer_call("value", payload)

    def events(self, records):
        self._open().events(records)

    def capture(self, *arguments):
        self._open().capture(*arguments)

    def end(self, **fields):
        if self._writer is not None or fields.get("weights"):
            self._open().end(**fields)

    def close(self):
        if self._writer is not None:
            self._writer.close()

    def definitions(self):
        """Return the function that gives the calls with which the file of a fork begins."""
        if self._writer is not None:
            return self._writer.definitions()
        calls = self._before() + [call for call in self._waiting if call[0] in ("define", "source")]
        return lambda: calls

    def _buffer_call(self, method, *arguments):
        if self._writer is not None:
            getattr(self._writer, method)(*arguments)
        else:
            self._waiting.append((method, arguments))

    def _open(self):
        if self._writer is None:
            self._writer = self._make()
            for method, arguments in self._before() + self._waiting:
                getattr(self._writer, method)(*arguments)
            self._waiting = []
        return self._writer
