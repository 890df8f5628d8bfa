"""The nodes of a GraphDef, or of a function in it: their outputs, and the names of their tensors."""


class NotExportableError(Exception):
    """An op of a saved graph that other processes cannot differentiate; the message says why."""


def in_graph(reference):
    """Split a tensor's name in a graph: ("name", 1) for "name:1"."""
    name, _, output = reference.partition(":")
    return name, int(output or 0)


def in_function(reference):
    """Split a tensor's name in a function: ("name", "output:1") for "name:output:1"; an argument has no output."""
    name, _, output = reference.partition(":")
    return name, output


class View(object):
    """The nodes of a graph or function.

    Args:
        nodes: NodeDefs.
        signatures: of functions, by name.
        split: in_graph or in_function: how tensors are named there.
    """

    def __init__(self, nodes, signatures, split):
        self.split = split
        self.by_name = dict((node.name, node) for node in nodes)
        self._signatures = signatures

    def signature(self, op_type):
        signature = self._signatures.get(op_type) or _definition(op_type)
        if signature is None:
            raise NotExportableError("TensorFlow has no op %s" % op_type)
        return signature

    def add_function(self, function):
        self._signatures[function.signature.name] = function.signature

    def outputs(self, node):
        """Return (name in functions, type) of each output of a node."""
        outputs = []
        for argument in self.signature(node.op).output_arg:
            if argument.type_list_attr:
                types = node.attr[argument.type_list_attr].list.type
            else:
                count = node.attr[argument.number_attr].i if argument.number_attr else 1
                types = [argument.type or node.attr[argument.type_attr].type] * count
            outputs += [("%s:%d" % (argument.name, number), dtype) for number, dtype in enumerate(types)]
        return outputs

    def tensors(self, node):
        """Return a node's outputs, each as split() returns it."""
        return [(node.name, name if self.split is in_function else number)
                for number, (name, _) in enumerate(self.outputs(node))]

    def named(self, name, number):
        """Return the name of a node's output here."""
        if self.split is in_graph:
            return "%s:%d" % (name, number)
        return "%s:%s" % (name, self.outputs(self.by_name[name])[number][0])

    def result_of(self, call, number):
        """Return the name of a result of a call to a function that this package made."""
        return "%s:out_%d:0" % (call.name, number) if self.split is in_function else "%s:%d" % (call.name, number)


def data_inputs(node):
    """Return the data inputs of a node, without control inputs."""
    return [reference for reference in node.input if not reference.startswith("^")]


def name_scope_of(node):
    """Return the name scope of a node with its slash; it contains all ops that a replaced op consists of."""
    return node.name[:node.name.rfind("/") + 1]


def _definition(op_type):
    """Return the OpDef of one of TensorFlow's ops, or None."""
    from tensorflow.python.framework import op_def_registry
    if hasattr(op_def_registry, "get"):
        return op_def_registry.get(op_type)
    return op_def_registry.get_registered_ops().get(op_type)
