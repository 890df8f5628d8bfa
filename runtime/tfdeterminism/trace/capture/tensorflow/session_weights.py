"""The digests of variables that sessions have trained."""

import weakref

from .. import digest
from . import internals as tf
from .graphs import ProbeScope, unfinalized


class SessionWeights(object):
    """The weights of all sessions, up to their end."""

    def __init__(self, recorder, wrappers):
        self._recorder = recorder
        self._sessions = weakref.WeakSet()
        self._last = self._values_at_close = None  # the session that trained last; its values, if it is closed
        self._final = {}
        session = tf.optional("tensorflow.python.client.session").BaseSession
        wrappers.wrap(session, "close", self._on_close)
        wrappers.wrap(session, "__del__", self._on_close)

    def on_fork(self):
        """Disregard the parent's sessions in a fork."""
        self._sessions, self._last, self._final = weakref.WeakSet(), None, {}

    def track(self, session):
        """Track a session, whose weights are read later."""
        self._sessions.add(session)

    def on_training_run(self, session):
        """Note that a session has run a training step."""
        self._last, self._values_at_close = session, None

    def last_session_values(self):
        """Return {label: array} of the variables of the session that trained last."""
        return {} if self._last is None else self._values_at_close or self._read_weights(self._last)

    def final_digests(self):
        """Return {label: digest} of all sessions' variables; of closed sessions as they were last."""
        final = dict(self._final)
        for session in list(self._sessions):
            if not getattr(session, "_closed", True):
                final.update(_digests(self._read_weights(session)))
        return final

    def _on_close(self, original, session):
        if self._recorder.active and session in self._sessions and not getattr(session, "_closed", True):
            values = self._read_weights(session)
            self._final.update(_digests(values))
            if session is self._last and self._recorder.values is not None:
                self._values_at_close = values
        return original(session)

    def _read_weights(self, session):
        """Return {label: array} of a session's trainable variables that have values."""
        try:
            with self._recorder.unrecorded():
                return self._values(session)
        except Exception:  # the runtime is shut down, or the session is broken
            return {}

    def _values(self, session):
        reads = self._reads(session.graph)
        names = sorted(reads)
        readiness = session.run([reads[name][0] for name in names]) if names else []
        names = [name for name, is_ready in zip(names, readiness) if is_ready]
        values = session.run([reads[name][1] for name in names]) if names else []
        return dict(zip(names, values))

    def _reads(self, graph):
        """Return {variable's name: (whether it is initialized, its value)} as tensors, added to a graph once."""
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
