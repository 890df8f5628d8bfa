"""What sessions have trained: digests of their variables."""

import weakref

from .. import digest
from . import internals as tf
from .graphs import ProbeScope, unfinalized


class SessionWeights(object):
    """Of all sessions that are followed, up to their end."""

    def __init__(self, recorder, wrappers):
        self._recorder = recorder
        self._sessions = weakref.WeakSet()
        self._last = self._left = None  # the session that trained last; what it left where it is closed
        self._final = {}
        session = tf.optional("tensorflow.python.client.session").BaseSession
        wrappers.wrap(session, "close", self._closing)
        wrappers.wrap(session, "__del__", self._closing)

    def on_fork(self):
        """In a fork: what the parent's sessions hold is the parent's."""
        self._sessions, self._last, self._final = weakref.WeakSet(), None, {}

    def track(self, session):
        """What a session that runs has trained will be asked for."""
        self._sessions.add(session)

    def on_training_run(self, session):
        """It has run a training step."""
        self._last, self._left = session, None

    def last_session_values(self):
        """{label: array} of the variables of the session that trained last."""
        return {} if self._last is None else self._left or self._of(self._last)

    def final_digests(self):
        """{label: digest} of all sessions' variables, of closed sessions as they were last."""
        found = dict(self._final)
        for session in list(self._sessions):
            if not getattr(session, "_closed", True):
                found.update(_digests(self._of(session)))
        return found

    def _closing(self, original, session):
        if self._recorder.active and session in self._sessions and not getattr(session, "_closed", True):
            values = self._of(session)
            self._final.update(_digests(values))
            if session is self._last and self._recorder.values is not None:
                self._left = values
        return original(session)

    def _of(self, session):
        """{label: array} of a session's trainable variables, as far as they have values."""
        try:
            with self._recorder.unrecorded():
                return self._values(session)
        except Exception:  # the runtime is gone, or the session is broken: there is nothing to read
            return {}

    def _values(self, session):
        reads = self._reads(session.graph)
        names = sorted(reads)
        ready = session.run([reads[name][0] for name in names]) if names else []
        names = [name for name, there in zip(names, ready) if there]
        values = session.run([reads[name][1] for name in names]) if names else []
        return dict(zip(names, values))

    def _reads(self, graph):
        """{variable's name: (is it initialised, its value)}, added to a graph once."""
        reads = graph._tfdet_reads = getattr(graph, "_tfdet_reads", {})
        with unfinalized(graph), ProbeScope(graph), graph.device(None):
            for variable in graph.get_collection("trainable_variables"):
                if variable.op.name not in reads and hasattr(variable, "value"):
                    reads[variable.op.name] = (_is_initialized(variable), variable.value())
        return reads


def _digests(values):
    return {label: digest.digest_array(value) for label, value in values.items()}


def _is_initialized(variable):
    if hasattr(variable, "is_initialized"):
        return variable.is_initialized()
    return tf.gen_state_ops.is_variable_initialized(variable._ref())  # a reference variable
