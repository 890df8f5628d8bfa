"""Replaced ops in a GraphDef, in a form that any process can differentiate.

In a graph a replaced op is many ops, and behind them an IdentityN of their results and of the op's inputs, whose
gradient function is registered in this process alone.  What is written has a function instead of the many ops, in the
library that is written too.  The node that calls it has the inputs and the outputs of the op that they stand for, and
asks for that op's own gradient function, which every TensorFlow has.
"""

import warnings

from tfdeterminism.patches.differentiable import has_gradient, need_differentiable
from tfdeterminism.patches.functiondef import function_of
from tfdeterminism.patches.graphdef import Unknown, View, data, in_function, in_graph, scope
from tfdeterminism.patches.markers import INSTEAD, KEY, OURS
from tfdeterminism.warned import SavedGradientWarning

_FROM_OUTSIDE = frozenset(("Placeholder", "PlaceholderWithDefault", "VarHandleOp", "Variable", "VariableV2"))


def rewrite(graph_def, shapes):
    """The new calls in the graph, as {what they stand in front of: [their tensors]}; names of functions changed.

    shapes(name): those of a node's outputs, as messages.  Nothing else knows the shapes of what a call returns.
    """
    functions = graph_def.library.function
    signatures = dict((function.signature.name, function.signature) for function in functions)
    before = set(signatures)
    nodes, changed = _Nodes(graph_def.node, (), signatures, in_graph, shapes), []
    nodes.rewrite()
    made = dict(nodes.made)
    for function in functions:
        inner = _Nodes(function.node_def, function.ret.values(), signatures, in_function, lambda name: [])
        if inner.rewrite():
            made.update(inner.made)
            changed.append(function.signature.name)
            _drop(function, inner.inside)
    functions.extend(made[name] for name in sorted(set(made) - before))
    return nodes.calls, changed


class _Nodes(object):
    """The nodes of a graph or of a function, whose results are `returned`; split: how tensors are named there."""

    def __init__(self, nodes, returned, signatures, split, shapes):
        self._nodes, self._shapes = nodes, shapes
        self._view = View(nodes, signatures, split)
        self._used = set(split(one) for one in returned)  # what there are consumers of
        self.made = {}  # functions by name; that of two equal ones is one
        self.inside = {}  # node that is in a function now -> the call
        self.calls = {}  # marked node -> tensors of its call

    def rewrite(self):
        """Whether there was anything to do."""
        marked = [node for node in self._nodes if self._is_marked(node)]
        if marked:
            self._used.update(self._view.split(one) for node in self._nodes for one in data(node))
        for node in marked:
            self._unmark(node)
        return bool(marked)

    def _is_marked(self, node):
        return KEY in node.attr and node.attr[KEY].s.startswith(OURS)

    def _unmark(self, node):
        if not self._is_marked(node):
            return  # done already, as a part of another
        way, op_type = node.attr[KEY].s[len(OURS):].decode().split("/")[:2]
        try:
            if way == "ops":
                self._take_loopless(node)
                self._need_differentiable(node, op_type)
                self._make_plain(node, op_type)
            elif self._view.signature(op_type) and has_gradient(op_type):
                self._call(node, op_type)
                self._make_plain(node, op_type)
            else:
                node.attr[KEY].s = op_type.encode()  # it has no gradient anywhere, which is an error as well
        except Unknown as reason:
            warnings.warn("The gradient of %s (%s) is not saved: %s. Where this is loaded, asking for it raises "
                          "LookupError." % (node.name, op_type, reason), SavedGradientWarning, stacklevel=2)

    def _take_loopless(self, node):
        """What was made instead of loops, if anything; what has the loops is left out of functions."""
        names = [name.decode() for name in node.attr[INSTEAD].list.s] if INSTEAD in node.attr else []
        if not set(in_graph(name)[0] for name in names) <= set(self._view.by_name):
            raise Unknown("of what it is made of %s is lost" % " and ".join(names))
        results, others = list(node.input)[:len(names)], list(node.input)[len(names):]
        if names:
            borders = dict.fromkeys(self._view.split(one) for one in data(node)[len(names):])
            loops, _ = self._between(node, results, borders)
            self.inside.update((loop, in_graph(names[0])[0]) for loop in loops)
        node.input[:] = [self._view.named(*in_graph(name)) for name in names] + others

    def _make_plain(self, node, op_type):
        """An IdentityN of the results alone: gradients of inputs that nobody asks for confuse old versions."""
        for key in (KEY, INSTEAD):
            node.attr.pop(key, None)
        given, kept = data(node), len(self._parts(node, op_type)[0])
        kept = max([kept] + [number + 1 for number, one in enumerate(self._view.tensors(node)) if one in self._used])
        node.input[:] = given[:kept] + list(node.input)[len(given):]
        del node.attr["T"].list.type[kept:]
        if "_output_shapes" in node.attr:
            del node.attr["_output_shapes"].list.shape[kept:]

    def _call(self, node, op_type):
        """Its results are those of a call with its inputs."""
        results, sources = self._parts(node, op_type)
        if len(sources) != len(self._view.signature(op_type).input_arg):
            raise Unknown("it has other inputs than the op")
        borders = dict((self._view.split(source), "in_%d" % number)
                       for number, source in reversed(list(enumerate(sources))))
        inside, before = self._between(node, results, borders)
        function = function_of(self._view, node, op_type, inside, results, borders, len(sources))
        self.made[function.signature.name] = function
        self._view.add_function(function)
        call = self._add_call(node, function, op_type, sources + before)
        tensors = [self._view.result_of(call, number) for number in range(len(results))]
        node.input[:] = tensors + list(node.input)[len(results):]
        self.inside.update((name, call.name) for name in inside)
        self.calls[node.name] = ["%s:%d" % (call.name, number) for number in range(len(results))]

    def _need_differentiable(self, node, op_type):
        results, sources = self._parts(node, op_type)
        types = node.attr["T"].list.type[len(results):]
        inside, _ = self._between(node, results, dict.fromkeys(self._view.split(source) for source in sources))
        need_differentiable(self._view, [self._view.by_name[name] for name in inside], sources, types, results)

    def _between(self, node, results, borders):
        """Names of the nodes between the borders and the results; what of the outside they are to run after."""
        within, inside, before, left = scope(node), [], [], list(results)
        seen = set()
        while left:
            reference = left.pop()
            if reference in seen or self._view.split(reference) in borders:
                continue
            seen.add(reference)
            name = self._view.split(reference.lstrip("^"))[0]
            if not (within and name.startswith(within) and name in self._view.by_name):
                if not reference.startswith("^"):
                    raise Unknown("it uses %s, which is no input of the op" % reference)
                before.append(reference)
            elif self._view.by_name[name].op in _FROM_OUTSIDE:
                raise Unknown("it uses %s, which is no input of the op" % name)
            elif name not in inside:
                inside.append(name)
                self._unmark(self._view.by_name[name])
                left += self._view.by_name[name].input
        return inside, before

    def _parts(self, node, op_type):
        """Tensors in front of a marked node: the results and the inputs of the op that it stands for."""
        outputs = len(self._view.signature(op_type).output_arg)
        return data(node)[:outputs], data(node)[outputs:]

    def _add_call(self, node, function, op_type, inputs):
        call = self._nodes.add(name=node.name + "/call", op=function.signature.name, input=inputs, device=node.device)
        call.attr[KEY].s = op_type.encode()
        known = "_output_shapes" in node.attr
        shapes = node.attr["_output_shapes"].list.shape if known else self._shapes(node.name)
        if shapes:
            call.attr["_output_shapes"].list.shape.extend(shapes[:len(function.signature.output_arg)])
        self._view.by_name[call.name] = call
        return call


def _drop(function, inside):
    """Out of a function what is in others now: what has effects would have them twice."""
    nodes = dict((node.name, node) for node in function.node_def)
    for name in set(nodes) - set(inside):
        node = nodes[name]
        after = set("^" + inside.get(one[1:], one[1:]) for one in node.input if one.startswith("^"))
        node.input[:] = data(node) + sorted(after - set(["^" + name]))
    left = set(nodes) - set(inside) | set(in_function(one)[0] for one in function.ret.values())
    kept = set()
    while left:
        name = left.pop()
        if name in nodes and name not in kept:
            kept.add(name)
            left.update(in_function(one.lstrip("^"))[0] for one in nodes[name].input)
    for number in reversed(range(len(function.node_def))):
        if function.node_def[number].name not in kept:
            del function.node_def[number]
    for name in [name for name, node in function.control_ret.items() if node not in kept]:
        del function.control_ret[name]
        function.signature.control_output.remove(name)
