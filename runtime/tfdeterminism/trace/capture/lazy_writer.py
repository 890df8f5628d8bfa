"""The trace of a process that may have nothing to tell: no file before there is something."""


class LazyWriter(object):
    """As a writer.Writer. make(): the Writer; before(): what the file begins with, [(method, arguments), ...]."""

    def __init__(self, make, before=list):
        self._make, self._before = make, before
        self._writer = None
        self._waiting = []  # (method, arguments) of what says nothing by itself

    @property
    def path(self):
        return self._open().path

    def define(self, definitions):
        self._buffer_call("define", definitions)

    def source(self, lines):
        self._buffer_call("source", lines)

    def note(self, kind, text):
        self._buffer_call("note", kind, text)

    def time(self, at):
        self._buffer_call("time", at)

    def value(self, payload):
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
        """What a fork of this process has to begin its file with."""
        if self._writer is not None:
            return self._writer.definitions()
        waiting = self._before() + [one for one in self._waiting if one[0] in ("define", "source")]
        return lambda: waiting

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
