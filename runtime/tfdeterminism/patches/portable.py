"""Replaced ops in a GraphDef, in a form that any process can differentiate.

In a graph a replaced op is many ops, and behind them an IdentityN of their results and of the op's inputs, whose
gradient function is registered in this process alone.  What is written has a function instead of the many ops, in the
library that is written too.  The node that calls it has the inputs and the outputs of the op that they stand for, and
asks for that op's own gradient function, which every TensorFlow has.
"""

import hashlib
import os
import warnings

from tfdeterminism.warned import SavedGradientWarning

_KEY = "_gradient_op_type"
_OURS = b"tfdeterminism/"
_INSTEAD = "_tfdeterminism_instead"
# Drawn for each process, and not from Python's generator: what still has such a name is known to no other process.
_PROCESS = "".join("%02x" % byte for byte in bytearray(os.urandom(8)))
_FROM_OUTSIDE = frozenset(("Placeholder", "PlaceholderWithDefault", "VarHandleOp", "Variable", "VariableV2"))
# No gradient passes these, and no error says so.
_FLAT = frozenset(("Ceil", "Floor", "FloorDiv", "FloorMod", "Rint", "Round", "Sign"))
_START = "tfdeterminism_start"


class _Unknown(Exception):
    """Why others cannot differentiate an op once it is written."""


def marker(op_type, by_its_ops, number):
    """A name for a gradient function, which says what the op becomes where it is written.

    by_its_ops: what it is made of is differentiated, op by op; else it is what asks for op_type's function.
    """
    return "%s%s/%s/%s-%d" % (_OURS.decode(), "ops" if by_its_ops else "call", op_type, _PROCESS, number)


def is_marker(name):
    return name.startswith(_OURS.decode())


def instead(tensors):
    """Attributes of a marked node: where it is written, its results are these instead."""
    from tensorflow.core.framework import attr_value_pb2
    names = [tensor.name.encode() for tensor in tensors]
    return {_INSTEAD: attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(s=names))}


def is_unportable_loop(op_type):
    """Whether it is of a loop that another process may not differentiate.

    TensorFlow 1's cannot be: no GraphDef tells what belongs to them.  Until 2.3 the gradient of a While is registered
    only where one was made.
    """
    from tfdeterminism.patches.common import version
    return op_type == "NextIteration" or (op_type in ("StatelessWhile", "While") and version() < (2, 4))


def rewrite(graph_def, shapes):
    """The new calls in the graph, as {what they stand in front of: [their tensors]}; names of functions changed.

    shapes(name): those of a node's outputs, as messages.  Nothing else knows the shapes of what a call returns.
    """
    functions = graph_def.library.function
    signatures = dict((function.signature.name, function.signature) for function in functions)
    before = set(signatures)
    nodes, changed = _Nodes(graph_def.node, (), signatures, _in_graph, shapes), []
    nodes.rewrite()
    made = dict(nodes.made)
    for function in functions:
        inner = _Nodes(function.node_def, function.ret.values(), signatures, _in_function, lambda name: [])
        if inner.rewrite():
            made.update(inner.made)
            changed.append(function.signature.name)
            _drop(function, inner.inside)
    functions.extend(made[name] for name in sorted(set(made) - before))
    return nodes.calls, changed


def _in_graph(reference):
    """(node, what of it) of a tensor's name: of "name:1" the output 1."""
    name, _, output = reference.partition(":")
    return name, int(output or 0)


def _in_function(reference):
    """Of "name:output:1" the output "output:1"; of a function's argument the empty one."""
    name, _, output = reference.partition(":")
    return name, output


class _Nodes(object):
    """The nodes of a graph or of a function, whose results are `returned`; split: how tensors are named there."""

    def __init__(self, nodes, returned, signatures, split, shapes):
        self._nodes, self._signatures, self._split, self._shapes = nodes, signatures, split, shapes
        self._by_name = dict((node.name, node) for node in nodes)
        self._used = set(split(one) for one in returned)  # what there are consumers of
        self.made = {}  # functions by name; that of two equal ones is one
        self.inside = {}  # node that is in a function now -> the call
        self.calls = {}  # marked node -> tensors of its call

    def rewrite(self):
        """Whether there was anything to do."""
        marked = [node for node in self._nodes if self._is_marked(node)]
        if marked:
            self._used.update(self._split(one) for node in self._nodes for one in _data(node))
        for node in marked:
            self._unmark(node)
        return bool(marked)

    def _is_marked(self, node):
        return _KEY in node.attr and node.attr[_KEY].s.startswith(_OURS)

    def _unmark(self, node):
        if not self._is_marked(node):
            return  # done already, as a part of another
        way, op_type = node.attr[_KEY].s[len(_OURS):].decode().split("/")[:2]
        try:
            if way == "ops":
                self._take_loopless(node)
                self._need_differentiable(node, op_type)
                self._make_plain(node, op_type)
            elif self._signature(op_type) and has_gradient(op_type):
                self._call(node, op_type)
                self._make_plain(node, op_type)
            else:
                node.attr[_KEY].s = op_type.encode()  # it has no gradient anywhere, which is an error as well
        except _Unknown as reason:
            warnings.warn("The gradient of %s (%s) is not saved: %s. Where this is loaded, asking for it raises "
                          "LookupError." % (node.name, op_type, reason), SavedGradientWarning, stacklevel=2)

    def _take_loopless(self, node):
        """What was made instead of loops, if anything; what has the loops is left out of functions."""
        names = [name.decode() for name in node.attr[_INSTEAD].list.s] if _INSTEAD in node.attr else []
        if not set(_in_graph(name)[0] for name in names) <= set(self._by_name):
            raise _Unknown("of what it is made of %s is lost" % " and ".join(names))
        results, others = list(node.input)[:len(names)], list(node.input)[len(names):]
        if names:
            loops = self._between(node, results, dict.fromkeys(self._split(one) for one in _data(node)[len(names):]))[0]
            self.inside.update((loop, _in_graph(names[0])[0]) for loop in loops)
        node.input[:] = [self._named(*_in_graph(name)) for name in names] + others

    def _named(self, name, number):
        """How the output of a node is named here."""
        if self._split is _in_graph:
            return "%s:%d" % (name, number)
        return "%s:%s" % (name, self._outputs(self._by_name[name])[number][0])

    def _make_plain(self, node, op_type):
        """An IdentityN of the results alone: gradients of inputs that nobody asks for confuse old versions."""
        for key in (_KEY, _INSTEAD):
            node.attr.pop(key, None)
        data, kept = _data(node), len(self._parts(node, op_type)[0])
        kept = max([kept] + [number + 1 for number, one in enumerate(self._tensors(node)) if one in self._used])
        node.input[:] = data[:kept] + list(node.input)[len(data):]
        del node.attr["T"].list.type[kept:]
        if "_output_shapes" in node.attr:
            del node.attr["_output_shapes"].list.shape[kept:]

    def _call(self, node, op_type):
        """Its results are those of a call with its inputs."""
        results, sources = self._parts(node, op_type)
        if len(sources) != len(self._signature(op_type).input_arg):
            raise _Unknown("it has other inputs than the op")
        borders = dict((self._split(source), "in_%d" % number) for number, source in reversed(list(enumerate(sources))))
        inside, before = self._between(node, results, borders)
        function = self._function(node, op_type, inside, results, borders, len(sources))
        self.made[function.signature.name] = function
        self._signatures[function.signature.name] = function.signature
        call = self._add_call(node, function, op_type, sources + before)
        tensors = [self._output(call, number) for number in range(len(results))]
        node.input[:] = tensors + list(node.input)[len(results):]
        self.inside.update((name, call.name) for name in inside)
        self.calls[node.name] = ["%s:%d" % (call.name, number) for number in range(len(results))]

    def _between(self, node, results, borders):
        """Names of the nodes between the borders and the results; what of the outside they are to run after."""
        scope, inside, before, left = _scope(node), [], [], list(results)
        seen = set()
        while left:
            reference = left.pop()
            if reference in seen or self._split(reference) in borders:
                continue
            seen.add(reference)
            name = self._split(reference.lstrip("^"))[0]
            if not (scope and name.startswith(scope) and name in self._by_name):
                if not reference.startswith("^"):
                    raise _Unknown("it uses %s, which is no input of the op" % reference)
                before.append(reference)
            elif self._by_name[name].op in _FROM_OUTSIDE:
                raise _Unknown("it uses %s, which is no input of the op" % name)
            elif name not in inside:
                inside.append(name)
                self._unmark(self._by_name[name])
                left += self._by_name[name].input
        return inside, before

    def _need_differentiable(self, node, op_type):
        """Between its inputs and its results gradients must not end."""
        results, sources = self._parts(node, op_type)
        types = node.attr["T"].list.type[len(results):]
        borders = [self._split(source) for source in sources]
        inside, _ = self._between(node, results, dict.fromkeys(borders))
        inside = [self._by_name[name] for name in inside]
        for loop in [inner.name for inner in inside if is_unportable_loop(inner.op)]:
            raise _Unknown("where no loop was made, there is no gradient for %s" % loop)
        ends = set(self._split(result) for result in results)
        for source, kind in zip(borders, types):
            if _is_real_or_complex(kind):
                found = self._flow(source, inside, lambda inner: inner.op == "StopGradient")
                if ends.intersection(self._flow(source, inside, lambda inner: False)) - found:
                    raise _Unknown("only gradients that are stopped come to an input")
                self._need_no_flat(source, found)

    def _flow(self, source, inside, ends_at):
        """The tensors inside that depend on source, but not those only by nodes for which ends_at(node)."""
        found, before = set([source]), 0
        while before < len(found):
            before = len(found)
            for node in inside:
                if not ends_at(node) and found.intersection(self._split(one) for one in _data(node)):
                    found.update(self._reached(node))
        return found

    def _reached(self, node):
        kinds = [kind for _, kind in self._outputs(node)]
        return [one for one, kind in zip(self._tensors(node), kinds) if _is_real_or_complex(kind)]

    def _tensors(self, node):
        """What _split makes of the names of a node's outputs."""
        return [(node.name, name if self._split is _in_function else number)
                for number, (name, _) in enumerate(self._outputs(node))]

    def _need_no_flat(self, source, found):
        """StopGradient is meant, where gradients come by another way; what is flat is not."""
        for name in sorted(set(name for name, _ in found - set([source]))):
            if self._by_name[name].op in _FLAT:
                raise _Unknown("no gradient passes %s" % name)

    def _parts(self, node, op_type):
        """Tensors in front of a marked node: the results and the inputs of the op that it stands for."""
        outputs = len(self._signature(op_type).output_arg)
        return _data(node)[:outputs], _data(node)[outputs:]

    def _function(self, node, op_type, inside, results, borders, many):
        from tensorflow.core.framework import function_pb2
        types = node.attr["T"].list.type
        made = function_pb2.FunctionDef()
        for number in range(many):
            made.signature.input_arg.add(name="in_%d" % number, type=types[len(results) + number])
        # Constants, too, need something of the call before them: else old versions lose the loop around it.
        start = made.node_def.add(name=_START, op="Identity", input=["in_0"])
        start.attr["T"].type = types[len(results)]
        for name in inside:
            self._copy(self._by_name[name], inside, borders, made.node_def.add())
        for number, result in enumerate(results):
            self._result(made, number, types[number], self._inner(result, borders))
        made.signature.is_stateful = any(self._signature(inner.op).is_stateful for inner in made.node_def)
        digest = hashlib.sha256(made.SerializeToString(deterministic=True)).hexdigest()
        made.signature.name = "tfdeterminism_%s_%s" % (op_type, digest[:16])
        return made

    def _copy(self, node, inside, borders, copy):
        copy.CopyFrom(node)
        copy.attr.pop("_class", None)  # where to place it: beside what may be outside
        controls = [one for one in node.input if one.startswith("^") and one[1:] in inside]
        copy.input[:] = [self._inner(one, borders) for one in _data(node)] + controls or ["^" + _START]

    def _result(self, function, number, kind, reference):
        """Whoever inlines the function loses its gradient: better an error than that of its ops."""
        node = function.node_def.add(name="out_%d" % number, op="PreventGradient", input=[reference])
        node.attr["T"].type = kind
        node.attr["message"].s = b"The function was inlined that stood for an op with a gradient."
        function.signature.output_arg.add(name="out_%d" % number, type=kind)
        function.ret["out_%d" % number] = "out_%d:output:0" % number

    def _inner(self, reference, borders):
        """The tensor's name inside of a function."""
        name, output = self._split(reference)
        if (name, output) in borders:
            return borders[name, output]
        if self._split is _in_function:
            return reference
        return "%s:%s" % (name, self._outputs(self._by_name[name])[output][0])

    def _outputs(self, node):
        """(name as functions have it, type) of each of a node's outputs."""
        found = []
        for argument in self._signature(node.op).output_arg:
            if argument.type_list_attr:
                types = node.attr[argument.type_list_attr].list.type
            else:
                many = node.attr[argument.number_attr].i if argument.number_attr else 1
                types = [argument.type or node.attr[argument.type_attr].type] * many
            found += [("%s:%d" % (argument.name, number), kind) for number, kind in enumerate(types)]
        return found

    def _add_call(self, node, function, op_type, inputs):
        call = self._nodes.add(name=node.name + "/call", op=function.signature.name, input=inputs, device=node.device)
        call.attr[_KEY].s = op_type.encode()
        known = "_output_shapes" in node.attr
        shapes = node.attr["_output_shapes"].list.shape if known else self._shapes(node.name)
        if shapes:
            call.attr["_output_shapes"].list.shape.extend(shapes[:len(function.signature.output_arg)])
        self._by_name[call.name] = call
        return call

    def _output(self, call, number):
        return "%s:out_%d:0" % (call.name, number) if self._split is _in_function else "%s:%d" % (call.name, number)

    def _signature(self, op_type):
        found = self._signatures.get(op_type) or _definition(op_type)
        if found is None:
            raise _Unknown("TensorFlow has no op %s" % op_type)
        return found


def _data(node):
    return [one for one in node.input if not one.startswith("^")]


def _scope(node):
    """Of "scope/IdentityN" the "scope/": all that a replaced op is made of is in it."""
    return node.name[:node.name.rfind("/") + 1]


def _is_real_or_complex(kind):
    from tensorflow.python.framework import dtypes
    return dtypes.as_dtype(kind).is_floating or dtypes.as_dtype(kind).is_complex


def _definition(op_type):
    """What TensorFlow knows of an op of its own, or None."""
    from tensorflow.python.framework import op_def_registry
    if hasattr(op_def_registry, "get"):
        return op_def_registry.get(op_type)
    return op_def_registry.get_registered_ops().get(op_type)


def has_gradient(op_type):
    """Whether TensorFlow has a function for it."""
    from tensorflow.python.framework import ops
    registry = getattr(ops, "gradient_registry", None) or ops._gradient_registry
    try:
        return registry.lookup(op_type) is not None
    except LookupError:
        return False


def _drop(function, inside):
    """Out of a function what is in others now: what has effects would have them twice."""
    nodes = dict((node.name, node) for node in function.node_def)
    for name in set(nodes) - set(inside):
        node = nodes[name]
        after = set("^" + inside.get(one[1:], one[1:]) for one in node.input if one.startswith("^"))
        node.input[:] = _data(node) + sorted(after - set(["^" + name]))
    left = set(nodes) - set(inside) | set(_in_function(one)[0] for one in function.ret.values())
    kept = set()
    while left:
        name = left.pop()
        if name in nodes and name not in kept:
            kept.add(name)
            left.update(_in_function(one.lstrip("^"))[0] for one in nodes[name].input)
    for number in reversed(range(len(function.node_def))):
        if function.node_def[number].name not in kept:
            del function.node_def[number]
    for name in [name for name, node in function.control_ret.items() if node not in kept]:
        del function.control_ret[name]
        function.signature.control_output.remove(name)
