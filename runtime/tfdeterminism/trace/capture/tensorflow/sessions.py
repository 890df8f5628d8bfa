"""Session graphs: digests are fetched in the same session.run as the values that they are of.

An op runs only when a fetch needs it, so each set of fetches gets a pack of its own. In a branch of a
cond the pack lives in the branch and leaves it through a Merge, whose other side is alive when the
branch is dead; in the body of a while loop it is handed over in each iteration.
"""

import collections
import contextlib
import threading
import weakref

import numpy

from .. import digest
from . import classes
from . import internals as tf
from .functions import Additions, ancestors
from .pack import Pack, hand_over, keep_inputs


class Sessions(object):
    def __init__(self, recorder, keys, capture, patches):
        self._capture = capture
        self._recorder = recorder
        self._keys = keys
        self._kept = []
        self._lock = threading.RLock()
        self._plans = weakref.WeakKeyDictionary()   # graph: {what is run: plan}
        self._sessions = weakref.WeakSet()
        self._final = {}
        session = tf.optional("tensorflow.python.client.session").BaseSession
        patches.wrap(session, "_do_run", self._run)
        patches.wrap(session, "make_callable", self._callable)
        patches.wrap(session, "_make_callable_from_options", self._callable_from_options)
        runner = tf.optional("tensorflow.python.training.queue_runner_impl").QueueRunner
        patches.wrap(runner, "create_threads", self._run_ahead)
        patches.wrap(session, "close", self._closing)
        patches.wrap(session, "__del__", self._closing)

    # Hooks

    def _run(self, original, session, handle, targets, fetches, feeds, *rest):
        local = self._recorder.local
        if not self._recorder.active or handle is not None or getattr(local, "busy", False):
            return original(session, handle, targets, fetches, feeds, *rest)
        self._sessions.add(session)
        if self._recorder.level == "none":
            return original(session, handle, targets, fetches, feeds, *rest)
        plan = self._plan(session.graph, targets, fetches, list(feeds))
        extra = [] if plan.fetch is None else [plan.fetch]
        results = original(session, handle, list(targets) + plan.targets, list(fetches) + extra, feeds, *rest)
        self._recorder.seen_ops = True
        if extra:
            self._recorder.emit(*plan.pack.records(results[-1]))
            results = results[:-1]
        elif plan.pack.keys:
            self._recorder.emit(*plan.pack.records(None))
        if plan.trains:
            self._after_training(session)
        return results

    def _after_training(self, session):
        self._recorder.session = session
        self._recorder.applied()

    def _run_ahead(self, original, runner, *args, **kwargs):
        """How far the threads of a queue get before the program ends is chance."""
        for op in ancestors(runner.enqueue_ops):
            op._tfdet_ahead = True
        return original(runner, *args, **kwargs)

    def _callable(self, original, session, fetches, feed_list=None, accept_options=False):
        if feed_list is not None or not self._on():
            return original(session, fetches, feed_list, accept_options)
        return lambda **kwargs: session.run(fetches, **kwargs)

    def _callable_from_options(self, original, session, options):
        self._sessions.add(session)
        if not self._on():
            return original(session, options)
        graph = session.graph
        fetches = [graph.as_graph_element(name) for name in options.fetch]
        targets = [graph.as_graph_element(name) for name in options.target]
        plan = self._plan(graph, targets, fetches, [graph.as_graph_element(name) for name in options.feed])
        if plan.fetch is not None:
            options.fetch.append(plan.fetch.name)
        options.target.extend(op.name for op in plan.targets)
        made = original(session, options)

        def call(*args, **kwargs):
            results = made(*args, **kwargs)
            self._recorder.seen_ops = True
            if plan.fetch is not None:
                self._recorder.emit(*plan.pack.records(results[-1]))
                results = results[:-1]
            if plan.trains:
                self._after_training(session)
            return results

        return call

    def _closing(self, original, session):
        if self._recorder.active and session in self._sessions and not getattr(session, "_closed", True):
            self._final.update(self.weights(session))
        return original(session)

    def _on(self):
        return self._recorder.active and self._recorder.level != "none"

    # What is run

    def _plan(self, graph, targets, fetches, feeds):
        plans = self._plans.setdefault(graph, {})
        name = (tuple(op.name for op in targets), tuple(_name(one) for one in fetches),
                tuple(_name(one) for one in feeds))
        with self._lock:
            if name not in plans:
                with _thawed(graph):
                    plans[name] = self._new_plan(graph, targets, fetches, feeds)
        return plans[name]

    def _new_plan(self, graph, targets, fetches, feeds):
        fed = frozenset(one.op for one in feeds if hasattr(one, "op"))
        waiting = list(targets) + [one.op for one in fetches if hasattr(one, "op")]
        needed = ancestors(waiting, fed)
        ops = [op for op in graph.get_operations() if op in needed]
        self._loops(graph)
        with Additions(graph):
            builder = _Builder(self._keys)
            pack = Pack(self._keys, tf.use_sum())
            if self._recorder.level == "ops":
                pack = builder.pack(None, ops, fed)
            for key, tensor in getattr(graph, "_tfdet_extras", []):
                if tensor.op in needed:
                    pack.add(key, tensor)
            fetch = pack.packed()
            plain = [op for op in ops if op._control_flow_context is None]
            kept = keep_inputs(self._capture, self._keys, plain, self._kept)
        return _Plan(pack, fetch, kept, any(_trains(op) for op in ops))

    def _loops(self, graph):
        """Probe the loops that came since last time, before any session sees them."""
        if self._recorder.level != "ops":
            return
        first = getattr(graph, "_tfdet_looked_at", 0)
        ops = graph.get_operations()
        graph._tfdet_looked_at = len(ops)
        bodies = {}
        for op in ops[first:]:
            context = op._control_flow_context
            while context is not None and not context.IsWhileContext():
                context = context.outer_context
            if context is not None:
                bodies.setdefault(context, []).append(op)
        for context, inside in bodies.items():
            self._loop(graph, context, inside)

    def _loop(self, graph, context, inside):
        nexts = [op for op in inside if op.type == "NextIteration" and op._control_flow_context is context]
        if not nexts:
            return
        needed = ancestors(nexts)
        with Additions(graph):
            graph._set_control_flow_context(context)
            try:
                pack = _Builder(self._keys).pack(context, [op for op in inside if op in needed])
                packed = pack.packed()
                if packed is None:
                    return
                recorder = self._recorder

                def sink(value):
                    recorder.emit(*pack.records(value))
                    return []

                done = hand_over(sink, [packed], self._kept)
            finally:
                graph._set_control_flow_context(None)
        for op in nexts:
            op._add_control_inputs([done])
        for op in inside:  # iterations that overlap would mix their records
            if op.type in ("Enter", "RefEnter") and op._control_flow_context is context:
                op._set_attr("parallel_iterations", tf.attr_value(i=1))

    # Weights

    def weights(self, session):
        """{label: digest} of a session's trainable variables, as far as they have values."""
        try:
            with self._recorder.unseen():
                return self._digests(session)
        except Exception:  # the runtime is gone, or the session is broken: there is nothing to digest
            return {}

    def _digests(self, session):
        reads = self._reads(session.graph)
        names = sorted(reads)
        ready = session.run([reads[name][0] for name in names]) if names else []
        names = [name for name, there in zip(names, ready) if there]
        values = session.run([reads[name][1] for name in names]) if names else []
        return {name: digest.of_array(value) for name, value in zip(names, values)}

    def _reads(self, graph):
        """{variable's name: (is it initialised, its value)}, added to a graph once."""
        reads = graph._tfdet_reads = getattr(graph, "_tfdet_reads", {})
        with self._lock, _thawed(graph), Additions(graph), graph.device(None):
            for variable in graph.get_collection("trainable_variables"):
                if variable.op.name not in reads and hasattr(variable, "value"):
                    reads[variable.op.name] = (_is_initialized(variable), variable.value())
        return reads

    def final(self):
        found = dict(self._final)
        for session in list(self._sessions):
            if not getattr(session, "_closed", True):
                found.update(self.weights(session))
        return found


@contextlib.contextmanager
def _thawed(graph):
    """A finalized graph takes our ops nevertheless."""
    finalized, graph._finalized = graph._finalized, False
    try:
        yield
    finally:
        graph._finalized = finalized


class _Plan(object):
    """pack: what comes back; fetch: the tensor to fetch for it, or None; targets: ops to run besides;
    trains: does it end a step?"""

    def __init__(self, pack, fetch, targets, trains):
        self.targets = targets
        self.pack = pack
        self.fetch = fetch
        self.trains = trains


class _Builder(object):
    """Packs ops of one control flow context, with those of the conds inside it."""

    def __init__(self, keys):
        self._keys = keys

    def pack(self, context, ops, fed=frozenset()):
        """All that can be known of these ops; called with `context` as the graph's own."""
        pack = Pack(self._keys, tf.use_sum())
        inner, switched = collections.OrderedDict(), collections.OrderedDict()
        alive = _alive_in(context)
        switches = _switches(ops)
        for op in ops:
            child = _child(op._control_flow_context, context)
            if child is not None:
                if not child.IsWhileContext():  # a loop hands over by itself
                    inner.setdefault(child, []).append(op)
            elif op._control_flow_context is context and not (op in fed and len(op.outputs) > 1):
                behind = switches.get(op, frozenset()) - alive
                if not behind:
                    pack.add_op(op)
                elif _chain(behind, switches) is not None:
                    switched.setdefault(behind, []).append(op)
        for child, its in inner.items():
            graph = child.pred.graph
            graph._set_control_flow_context(child)
            try:
                branch = self.pack(child, its, fed)
                packed = branch.packed()
            finally:
                graph._set_control_flow_context(context)
            _join(pack, branch, packed, [_Side(child.pred, child.branch)])
        for behind, its in switched.items():
            branch = Pack(self._keys, tf.use_sum())
            for op in its:
                branch.add_op(op)
            _join(pack, branch, branch.packed(), _chain(behind, switches))
        return pack


def _join(pack, branch, packed, sides):
    """Add what is alive only behind these sides of switches, the outermost first; elsewhere it gives zeros."""
    if not branch.keys:
        return
    zeros = numpy.zeros((sum(branch.present) + 1, 8), numpy.uint8)
    ones = tf.constant(numpy.ones((1, 8), numpy.uint8))
    whole = tf.control_flow_ops.switch(ones, sides[-1].pred)[sides[-1].index]
    if packed is not None:
        whole = tf.array_ops.concat([whole, packed], 0)
    for side in reversed(sides):
        there = tf.control_flow_ops.switch(tf.constant(zeros), side.pred)[1 - side.index]
        whole = tf.control_flow_ops.merge([there, whole])[0]
    pack.add_branch(branch, whole)


def _chain(sides, switches):
    """Sides of switches from the outermost in; None where they are not nested, and so cannot be told apart."""
    ordered = sorted(sides, key=lambda side: len(switches.get(side.pred.op, ())))
    for number, side in enumerate(ordered):
        if not switches.get(side.pred.op, frozenset()).issuperset(ordered[:number]):
            return None
    return ordered


def _alive_in(context):
    """The sides of switches that are alive wherever a context's ops run."""
    alive = set()
    while context is not None:
        if context.IsWhileContext():
            pivot = context.pivot  # LoopCond
            return frozenset(alive | ({_Side(pivot, 1)} if pivot is not None else set()))
        alive.add(_Side(context.pred, context.branch))
        context = context.outer_context
    return frozenset(alive)


class _Side(object):
    """One output of the switches of one predicate; comparable, as tensors are not in all versions."""

    def __init__(self, pred, index):
        self.pred, self.index = pred, index

    def __eq__(self, other):
        return self.pred is other.pred and self.index == other.index

    def __hash__(self):
        return hash((id(self.pred), self.index))


def _switches(ops):
    """{op: the sides of switches that it lies behind}: outside a cond its gradient puts such ops."""
    behind = {}

    def sides_of(tensor):
        found = behind.get(tensor.op, frozenset())
        if tensor.op.type in ("Switch", "RefSwitch"):
            found = found | {_Side(tensor.op.inputs[1], tensor.value_index)}
        return found

    for op in ops:  # in the order of creation
        if op.type in ("Exit", "RefExit"):  # alive however often the loop ran
            continue
        if op.type in ("Merge", "RefMerge"):  # alive with either input; a back edge does not matter
            known = [sides_of(tensor) for tensor in op.inputs if tensor.op.type != "NextIteration"]
            behind[op] = frozenset.intersection(*known)
            continue
        sides = frozenset().union(*[sides_of(tensor) for tensor in op.inputs])
        behind[op] = sides.union(*[behind.get(one, frozenset()) for one in op.control_inputs])
    return behind


def _child(inner, outer):
    """The context directly inside `outer` in which `inner` lies, or None."""
    while inner is not None and inner is not outer and inner.outer_context is not outer:
        inner = inner.outer_context
    return None if inner is outer else inner


def _is_initialized(variable):
    if hasattr(variable, "is_initialized"):
        return variable.is_initialized()
    return tf.gen_state_ops.is_variable_initialized(variable._ref())  # a reference variable


def _trains(op):
    return classes.trains(op.type) or (classes.writes(op.type) and "gradients/" in op.name)


def _name(one):
    return getattr(one, "name", str(one))
