"""Build a FunctionDef of the ops by which a patch replaces an op: a saved graph then holds one call in their place.

A reference is the name of a tensor as nodes write it; view.split(reference) gives the node's name and the output.

A node of the graph is marked (markers.py) to say that such ops stand for an op.
"""

import hashlib

from tfdeterminism.patches.graphdef import data_inputs, in_function

_START = "tfdeterminism_start"


def function_of(view, node, op_type, inner_names, results, borders, argument_count):
    """Build the FunctionDef of a marked node.

    Args:
        view: a graphdef.View.
        node: the marked node.
        op_type: the replaced op.
        inner_names: the names of the nodes that become the function's.
        results: the names of its result tensors.
        borders: {tensor as view.split returns it: the argument that it becomes, in_0, in_1, ...}.
        argument_count: the number of arguments.
    """
    from tensorflow.core.framework import function_pb2
    types = node.attr["T"].list.type  # a marked node is an IdentityN of the results, then of the op's inputs
    function = function_pb2.FunctionDef()
    for number in range(argument_count):
        function.signature.input_arg.add(name="in_%d" % number, type=types[len(results) + number])
    # Constants need a control input in the function, too: otherwise old versions lose the loop around the call.
    start = function.node_def.add(name=_START, op="Identity", input=["in_0"])
    start.attr["T"].type = types[len(results)]
    for name in inner_names:
        _copy(view, view.by_name[name], inner_names, borders, function.node_def.add())
    for number, result in enumerate(results):
        _result(function, number, types[number], _inner(view, result, borders))
    function.signature.is_stateful = any(view.signature(inner.op).is_stateful for inner in function.node_def)
    digest = hashlib.sha256(function.SerializeToString(deterministic=True)).hexdigest()
    function.signature.name = "tfdeterminism_%s_%s" % (op_type, digest[:16])
    return function


def _copy(view, node, inner_names, borders, copy):
    copy.CopyFrom(node)
    copy.attr.pop("_class", None)  # colocation with a node that may be outside of the function
    controls = [reference for reference in node.input if reference.startswith("^") and reference[1:] in inner_names]
    copy.input[:] = [_inner(view, reference, borders) for reference in data_inputs(node)] + controls or ["^" + _START]


def _result(function, number, kind, reference):
    """Add a result behind a PreventGradient: if the function is inlined, differentiating it raises an error."""
    node = function.node_def.add(name="out_%d" % number, op="PreventGradient", input=[reference])
    node.attr["T"].type = kind
    node.attr["message"].s = b"The function was inlined that stood for an op with a gradient."
    function.signature.output_arg.add(name="out_%d" % number, type=kind)
    function.ret["out_%d" % number] = "out_%d:output:0" % number


def _inner(view, reference, borders):
    """Return the name of a tensor inside the function."""
    name, output = view.split(reference)
    if (name, output) in borders:
        return borders[name, output]
    if view.split is in_function:
        return reference
    return "%s:%s" % (name, view.outputs(view.by_name[name])[output][0])
