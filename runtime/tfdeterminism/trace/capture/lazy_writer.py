"""The trace of a process that may have nothing to tell: no file before there is something."""


class LazyWriter(object):
    """As a writer.Writer. make(): the Writer; before(): what the file begins with, [(method, arguments), ...]."""

    def __init__(self, make, before=list):
        self._make, self._before = make, before
        self._writer = None
        self._waiting = []  # (method, arguments) of what says nothing by itself

    @property
    def path(self):
        return self._begun().path

    def define(self, definitions):
        self._later("define", definitions)

    def source(self, lines):
        self._later("source", lines)

    def note(self, kind, text):
        self._later("note", kind, text)

    def time(self, at):
        self._later("time", at)

    def value(self, payload):
        self._later("value", payload)

    def events(self, records):
        self._begun().events(records)

    def capture(self, *arguments):
        self._begun().capture(*arguments)

    def end(self, **fields):
        if self._writer is not None or fields.get("weights"):
            self._begun().end(**fields)

    def close(self):
        if self._writer is not None:
            self._writer.close()

    def definitions(self):
        """What a fork of this process has to begin its file with."""
        if self._writer is not None:
            return self._writer.definitions()
        waiting = self._before() + [one for one in self._waiting if one[0] in ("define", "source")]
        return lambda: waiting

    def _later(self, method, *arguments):
        if self._writer is not None:
            getattr(self._writer, method)(*arguments)
        else:
            self._waiting.append((method, arguments))

    def _begun(self):
        if self._writer is None:
            self._writer = self._make()
            for method, arguments in self._before() + self._waiting:
                getattr(self._writer, method)(*arguments)
            self._waiting = []
        return self._writer
