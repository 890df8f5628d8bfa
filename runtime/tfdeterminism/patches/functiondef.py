"""Builds a function from the ops that a replaced op consists of."""

import hashlib

from tfdeterminism.patches.graphdef import data, in_function

_START = "tfdeterminism_start"


def function_of(view, node, op_type, inside, results, borders, many):
    """Build the FunctionDef of a marked node.

    Args:
        view: a graphdef.View.
        node: the marked node.
        op_type: the replaced op.
        inside: the names of the nodes that become the function's.
        results: the names of its result tensors.
        borders: {tensor as view.split returns it: the argument that it becomes, in_0, in_1, ...}.
        many: the number of arguments.
    """
    from tensorflow.core.framework import function_pb2
    types = node.attr["T"].list.type
    made = function_pb2.FunctionDef()
    for number in range(many):
        made.signature.input_arg.add(name="in_%d" % number, type=types[len(results) + number])
    # Constants need a control input in the function, too: otherwise old versions lose the loop around the call.
    start = made.node_def.add(name=_START, op="Identity", input=["in_0"])
    start.attr["T"].type = types[len(results)]
    for name in inside:
        _copy(view, view.by_name[name], inside, borders, made.node_def.add())
    for number, result in enumerate(results):
        _result(made, number, types[number], _inner(view, result, borders))
    made.signature.is_stateful = any(view.signature(inner.op).is_stateful for inner in made.node_def)
    digest = hashlib.sha256(made.SerializeToString(deterministic=True)).hexdigest()
    made.signature.name = "tfdeterminism_%s_%s" % (op_type, digest[:16])
    return made


def _copy(view, node, inside, borders, copy):
    copy.CopyFrom(node)
    copy.attr.pop("_class", None)  # where to place it: beside what may be outside
    controls = [one for one in node.input if one.startswith("^") and one[1:] in inside]
    copy.input[:] = [_inner(view, one, borders) for one in data(node)] + controls or ["^" + _START]


def _result(function, number, kind, reference):
    """Add a result behind a PreventGradient: if the function is inlined, differentiating it raises an error."""
    node = function.node_def.add(name="out_%d" % number, op="PreventGradient", input=[reference])
    node.attr["T"].type = kind
    node.attr["message"].s = b"The function was inlined that stood for an op with a gradient."
    function.signature.output_arg.add(name="out_%d" % number, type=kind)
    function.ret["out_%d" % number] = "out_%d:output:0" % number


def _inner(view, reference, borders):
    """The name of a tensor inside the function."""
    name, output = view.split(reference)
    if (name, output) in borders:
        return borders[name, output]
    if view.split is in_function:
        return reference
    return "%s:%s" % (name, view.outputs(view.by_name[name])[output][0])
