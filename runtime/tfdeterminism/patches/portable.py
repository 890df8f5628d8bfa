"""The rewriting of a GraphDef, so that any process can differentiate its replaced ops.

In a graph a replaced op is many ops, followed by an IdentityN of their results and of the op's inputs, whose gradient
function only this process has registered. In the rewritten GraphDef a function, in its library, holds the many ops. The
node that calls it has the inputs and outputs of the replaced op, and names that op's own gradient function, which every
TensorFlow has registered.
"""

import warnings

from tfdeterminism.patches.differentiable import has_gradient, require_differentiable
from tfdeterminism.patches.functiondef import function_of
from tfdeterminism.patches.graphdef import NotExportableError, View, data_inputs, in_function, in_graph, name_scope_of
from tfdeterminism.patches.markers import GRADIENT_ATTR, MARKER_PREFIX, REPLACEMENT_ATTR
from tfdeterminism.warning_categories import SavedGradientWarning

# Ops whose value comes from outside of the replaced op, even within its name scope.
_EXTERNAL_OPS = frozenset(("Placeholder", "PlaceholderWithDefault", "VarHandleOp", "Variable", "VariableV2"))


def rewrite(graph_def, shapes):
    """Rewrite a GraphDef in place.

    Args:
        graph_def: the GraphDef.
        shapes: shapes(node name) -> the shapes of its outputs, as protocol buffers.

    Returns:
        The new calls, as {marked node: [tensors of its call]}, and the names of the functions that changed.
    """
    functions = graph_def.library.function
    signatures = dict((function.signature.name, function.signature) for function in functions)
    existing_names = set(signatures)
    nodes, changed_names = _Nodes(graph_def.node, (), signatures, in_graph, shapes), []
    nodes.rewrite()
    new_functions = dict(nodes.new_functions)
    for function in functions:
        inner = _Nodes(function.node_def, function.ret.values(), signatures, in_function, lambda name: [])
        if inner.rewrite():
            new_functions.update(inner.new_functions)
            changed_names.append(function.signature.name)
            _drop(function, inner.moved_nodes)
    functions.extend(new_functions[name] for name in sorted(set(new_functions) - existing_names))
    return nodes.calls, changed_names


class _Nodes(object):
    """The nodes of a graph or function.

    Args:
        nodes: NodeDefs.
        returned: names of the tensors that a function returns.
        signatures: of functions, by name. split: splits the name of a tensor into (node, number of the output).
        shapes: see rewrite().
    """

    def __init__(self, nodes, returned, signatures, split, shapes):
        self._nodes, self._shapes = nodes, shapes
        self._view = View(nodes, signatures, split)
        self._used = set(split(reference) for reference in returned)  # tensors with consumers
        self.new_functions = {}  # {name: FunctionDef}; equal functions have the same name
        self.moved_nodes = {}  # {node that is now in a function: its call}
        self.calls = {}  # {marked node: tensors of its call}

    def rewrite(self):
        """Rewrite all marked nodes, and return whether there were any."""
        marked = [node for node in self._nodes if self._is_marked(node)]
        if marked:
            self._used.update(self._view.split(reference) for node in self._nodes for reference in data_inputs(node))
        for node in marked:
            self._unmark(node)
        return bool(marked)

    def _is_marked(self, node):
        return GRADIENT_ATTR in node.attr and node.attr[GRADIENT_ATTR].s.startswith(MARKER_PREFIX)

    def _unmark(self, node):
        if not self._is_marked(node):
            return  # already done, as a part of another node
        # method "ops": the gradient is that of the ops within the replaced op; "call": that of the original op type.
        method, op_type = node.attr[GRADIENT_ATTR].s[len(MARKER_PREFIX):].decode().split("/")[:2]
        try:
            if method == "ops":
                self._take_loopless(node)
                self._require_differentiable(node, op_type)
                self._make_plain(node, op_type)
            elif self._view.signature(op_type) and has_gradient(op_type):
                self._call(node, op_type)
                self._make_plain(node, op_type)
            else:
                node.attr[GRADIENT_ATTR].s = op_type.encode()  # it has no gradient in any process: asking for it raises
        except NotExportableError as reason:
            warnings.warn("The gradient of %s (%s) is not saved: %s. Where this is loaded, asking for it raises "
                          "LookupError." % (node.name, op_type, reason), SavedGradientWarning, stacklevel=2)

    def _take_loopless(self, node):
        """Use the form without loops, if there is one: some processes cannot differentiate a loop.

        Functions do not get the nodes with loops.
        """
        names = [name.decode() for name in node.attr[REPLACEMENT_ATTR].list.s] if REPLACEMENT_ATTR in node.attr else []
        if not set(in_graph(name)[0] for name in names) <= set(self._view.by_name):
            raise NotExportableError("of what it is made of %s is lost" % " and ".join(names))
        results, inputs = list(node.input)[:len(names)], list(node.input)[len(names):]
        if names:
            borders = dict.fromkeys(self._view.split(reference) for reference in data_inputs(node)[len(names):])
            loops, _ = self._nodes_between(node, results, borders)
            self.moved_nodes.update((loop, in_graph(names[0])[0]) for loop in loops)
        node.input[:] = [self._view.named(*in_graph(name)) for name in names] + inputs

    def _make_plain(self, node, op_type):
        """Make the node an IdentityN of the results alone: unused gradients of inputs confuse old versions."""
        for key in (GRADIENT_ATTR, REPLACEMENT_ATTR):
            node.attr.pop(key, None)
        references, kept_count = data_inputs(node), len(self._split_inputs(node, op_type)[0])
        used = [number for number, tensor in enumerate(self._view.tensors(node)) if tensor in self._used]
        kept_count = max([kept_count] + [number + 1 for number in used])
        node.input[:] = references[:kept_count] + list(node.input)[len(references):]
        del node.attr["T"].list.type[kept_count:]
        if "_output_shapes" in node.attr:
            del node.attr["_output_shapes"].list.shape[kept_count:]

    def _call(self, node, op_type):
        """Replace the nodes behind a marked node by a call of a function."""
        results, sources = self._split_inputs(node, op_type)
        if len(sources) != len(self._view.signature(op_type).input_arg):
            raise NotExportableError("it has other inputs than the op")
        borders = dict((self._view.split(source), "in_%d" % number)
                       for number, source in reversed(list(enumerate(sources))))
        inner_names, control_inputs = self._nodes_between(node, results, borders)
        function = function_of(self._view, node, op_type, inner_names, results, borders, len(sources))
        self.new_functions[function.signature.name] = function
        self._view.add_function(function)
        call = self._add_call(node, function, op_type, sources + control_inputs)
        tensors = [self._view.result_of(call, number) for number in range(len(results))]
        node.input[:] = tensors + list(node.input)[len(results):]
        self.moved_nodes.update((name, call.name) for name in inner_names)
        self.calls[node.name] = ["%s:%d" % (call.name, number) for number in range(len(results))]

    def _require_differentiable(self, node, op_type):
        results, sources = self._split_inputs(node, op_type)
        types = node.attr["T"].list.type[len(results):]
        names, _ = self._nodes_between(node, results, dict.fromkeys(self._view.split(source) for source in sources))
        require_differentiable(self._view, [self._view.by_name[name] for name in names], sources, types, results)

    def _nodes_between(self, node, results, borders):
        """Return the names of the nodes from results back to the tensors `borders`, and control inputs from outside."""
        scope_name, inner_names, control_inputs, pending = name_scope_of(node), [], [], list(results)
        visited = set()
        while pending:
            reference = pending.pop()
            if reference in visited or self._view.split(reference) in borders:
                continue
            visited.add(reference)
            name = self._view.split(reference.lstrip("^"))[0]
            if not (scope_name and name.startswith(scope_name) and name in self._view.by_name):
                if not reference.startswith("^"):
                    raise NotExportableError("it uses %s, which is no input of the op" % reference)
                control_inputs.append(reference)
            elif self._view.by_name[name].op in _EXTERNAL_OPS:
                raise NotExportableError("it uses %s, which is no input of the op" % name)
            elif name not in inner_names:
                inner_names.append(name)
                self._unmark(self._view.by_name[name])
                pending += self._view.by_name[name].input
        return inner_names, control_inputs

    def _split_inputs(self, node, op_type):
        """Return the inputs of a marked node: the results and the inputs of the replaced op."""
        outputs = len(self._view.signature(op_type).output_arg)
        return data_inputs(node)[:outputs], data_inputs(node)[outputs:]

    def _add_call(self, node, function, op_type, inputs):
        call = self._nodes.add(name=node.name + "/call", op=function.signature.name, input=inputs, device=node.device)
        call.attr[GRADIENT_ATTR].s = op_type.encode()
        has_shapes = "_output_shapes" in node.attr
        shapes = node.attr["_output_shapes"].list.shape if has_shapes else self._shapes(node.name)
        if shapes:
            call.attr["_output_shapes"].list.shape.extend(shapes[:len(function.signature.output_arg)])
        self._view.by_name[call.name] = call
        return call


def _drop(function, moved_nodes):
    """Remove the nodes from a function that other functions contain now: their side effects would happen twice."""
    nodes = dict((node.name, node) for node in function.node_def)
    for name in set(nodes) - set(moved_nodes):
        node = nodes[name]
        control_inputs = set("^" + moved_nodes.get(reference[1:], reference[1:])
                             for reference in node.input if reference.startswith("^"))
        node.input[:] = data_inputs(node) + sorted(control_inputs - set(["^" + name]))
    pending = set(nodes) - set(moved_nodes) | set(in_function(reference)[0] for reference in function.ret.values())
    kept_names = set()
    while pending:
        name = pending.pop()
        if name in nodes and name not in kept_names:
            kept_names.add(name)
            pending.update(in_function(reference.lstrip("^"))[0] for reference in nodes[name].input)
    for index in reversed(range(len(function.node_def))):
        if function.node_def[index].name not in kept_names:
            del function.node_def[index]
    for name in [name for name, node in function.control_ret.items() if node not in kept_names]:
        del function.control_ret[name]
        function.signature.control_output.remove(name)
