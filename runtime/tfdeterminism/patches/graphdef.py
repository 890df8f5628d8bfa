"""The nodes of a GraphDef, or of a function in it: what they put out, and what that is called there."""


class Unknown(Exception):
    """Why others cannot differentiate an op once it is written."""


def in_graph(reference):
    """(node, what of it) of a tensor's name: of "name:1" the output 1."""
    name, _, output = reference.partition(":")
    return name, int(output or 0)


def in_function(reference):
    """Of "name:output:1" the output "output:1"; of a function's argument the empty one."""
    name, _, output = reference.partition(":")
    return name, output


class View(object):
    """signatures: of functions, by name; split: in_graph or in_function, how tensors are named there."""

    def __init__(self, nodes, signatures, split):
        self.split = split
        self.by_name = dict((node.name, node) for node in nodes)
        self._signatures = signatures

    def signature(self, op_type):
        found = self._signatures.get(op_type) or _definition(op_type)
        if found is None:
            raise Unknown("TensorFlow has no op %s" % op_type)
        return found

    def add_function(self, function):
        self._signatures[function.signature.name] = function.signature

    def outputs(self, node):
        """(name as functions have it, type) of each of a node's outputs."""
        found = []
        for argument in self.signature(node.op).output_arg:
            if argument.type_list_attr:
                types = node.attr[argument.type_list_attr].list.type
            else:
                many = node.attr[argument.number_attr].i if argument.number_attr else 1
                types = [argument.type or node.attr[argument.type_attr].type] * many
            found += [("%s:%d" % (argument.name, number), kind) for number, kind in enumerate(types)]
        return found

    def tensors(self, node):
        """What split makes of the names of a node's outputs."""
        return [(node.name, name if self.split is in_function else number)
                for number, (name, _) in enumerate(self.outputs(node))]

    def named(self, name, number):
        """How the output of a node is named here."""
        if self.split is in_graph:
            return "%s:%d" % (name, number)
        return "%s:%s" % (name, self.outputs(self.by_name[name])[number][0])

    def result_of(self, call, number):
        """How a result of a call of ours is named here."""
        return "%s:out_%d:0" % (call.name, number) if self.split is in_function else "%s:%d" % (call.name, number)


def data(node):
    return [one for one in node.input if not one.startswith("^")]


def scope(node):
    """Of "scope/IdentityN" the "scope/": all that a replaced op is made of is in it."""
    return node.name[:node.name.rfind("/") + 1]


def _definition(op_type):
    """What TensorFlow knows of an op of its own, or None."""
    from tensorflow.python.framework import op_def_registry
    if hasattr(op_def_registry, "get"):
        return op_def_registry.get(op_type)
    return op_def_registry.get_registered_ops().get(op_type)
