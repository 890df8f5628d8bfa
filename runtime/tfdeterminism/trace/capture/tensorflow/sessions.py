"""The probes for sessions: digests are fetched in the same session.run as the values.

fetch_plans.py decides what is fetched in addition.
"""

from . import internals as tf
from .fetch_plans import FetchPlans
from .graphs import ancestors


class Sessions(object):
    """The wrappers around the methods that run a session.

    keys: the graph_keys.GraphOpIds, which gives each op's output its id in the trace; labels: the
    variable_labels.VariableLabels; weights: the session_weights.SessionWeights.
    """

    def __init__(self, recorder, keys, labels, weights, capture, wrappers):
        self._recorder = recorder
        self._weights = weights
        self._plans = FetchPlans(recorder, keys, labels, capture)
        session = tf.optional("tensorflow.python.client.session").BaseSession
        wrappers.wrap(session, "_do_run", self._run)
        wrappers.wrap(session, "make_callable", self._on_make_callable)
        wrappers.wrap(session, "_make_callable_from_options", self._on_make_callable_from_options)
        runner = tf.optional("tensorflow.python.training.queue_runner_impl").QueueRunner
        wrappers.wrap(runner, "create_threads", self._run_ahead)

    def _run(self, original, session, handle, targets, fetches, feeds, *rest):
        local = self._recorder.local
        if not self._recorder.active or handle is not None or getattr(local, "busy", False):
            return original(session, handle, targets, fetches, feeds, *rest)
        self._weights.track(session)
        if self._recorder.level == "none":
            return original(session, handle, targets, fetches, feeds, *rest)
        plan = self._plans.plan_for(session.graph, targets, fetches, list(feeds))
        extra = [] if plan.fetch is None else [plan.fetch]
        results = original(session, handle, list(targets) + plan.targets, list(fetches) + extra, feeds, *rest)
        self._recorder.seen_ops = True
        if extra:
            self._recorder.emit(*plan.pack.unpack_records(results[-1]))
            results = results[:-1]
        elif plan.pack.keys:
            self._recorder.emit(*plan.pack.unpack_records(None))
        if plan.trains:
            self._after_training(session)
        return results

    def _after_training(self, session):
        self._weights.on_training_run(session)
        self._recorder.steps.on_optimizer_applied()

    def _run_ahead(self, original, runner, *args, **kwargs):
        """Mark ops that run in queue threads, whose progress before the program ends is chance."""
        for op in ancestors(runner.enqueue_ops):
            op._tfdet_in_queue_thread = True
        return original(runner, *args, **kwargs)

    def _on_make_callable(self, original, session, fetches, feed_list=None, accept_options=False):
        if feed_list is not None or not self._is_active():
            return original(session, fetches, feed_list, accept_options)
        return lambda **kwargs: session.run(fetches, **kwargs)

    def _on_make_callable_from_options(self, original, session, options):
        self._weights.track(session)
        if not self._is_active():
            return original(session, options)
        graph = session.graph
        fetches = [graph.as_graph_element(name) for name in options.fetch]
        targets = [graph.as_graph_element(name) for name in options.target]
        plan = self._plans.plan_for(graph, targets, fetches, [graph.as_graph_element(name) for name in options.feed])
        if plan.fetch is not None:
            options.fetch.append(plan.fetch.name)
        options.target.extend(op.name for op in plan.targets)
        run_callable = original(session, options)

        def call(*args, **kwargs):
            results = run_callable(*args, **kwargs)
            self._recorder.seen_ops = True
            if plan.fetch is not None:
                self._recorder.emit(*plan.pack.unpack_records(results[-1]))
                results = results[:-1]
            if plan.trains:
                self._after_training(session)
            return results

        return call

    def _is_active(self):
        return self._recorder.active and self._recorder.level != "none"
