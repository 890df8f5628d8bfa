"""A function made of the ops that a replaced op consists of."""

import hashlib

from tfdeterminism.patches.graphdef import data, in_function

_START = "tfdeterminism_start"


def function_of(view, node, op_type, inside, results, borders, many):
    """The FunctionDef of the nodes `inside`, for a marked node.

    results: names of its tensors; borders: {tensor (as split gives it): the argument in_0, in_1, ... that it becomes};
    many: how many arguments it has.
    """
    from tensorflow.core.framework import function_pb2
    types = node.attr["T"].list.type
    made = function_pb2.FunctionDef()
    for number in range(many):
        made.signature.input_arg.add(name="in_%d" % number, type=types[len(results) + number])
    # Constants, too, need something of the call before them: else old versions lose the loop around it.
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
    """Whoever inlines the function loses its gradient: better an error than that of its ops."""
    node = function.node_def.add(name="out_%d" % number, op="PreventGradient", input=[reference])
    node.attr["T"].type = kind
    node.attr["message"].s = b"The function was inlined that stood for an op with a gradient."
    function.signature.output_arg.add(name="out_%d" % number, type=kind)
    function.ret["out_%d" % number] = "out_%d:output:0" % number


def _inner(view, reference, borders):
    """The tensor's name inside of a function."""
    name, output = view.split(reference)
    if (name, output) in borders:
        return borders[name, output]
    if view.split is in_function:
        return reference
    return "%s:%s" % (name, view.outputs(view.by_name[name])[output][0])
