"""What of a tf.data op explains that its output differs: its order is left open, or its function draws."""

from . import op_traits

# Where the two seeds are among the inputs; both zero: none was given.
_SEEDS = {"ShuffleDataset": slice(2, 4), "ShuffleDatasetV3": slice(2, 4), "ShuffleAndRepeatDataset": slice(2, 4),
          "ShuffleAndRepeatDatasetV2": slice(2, 4), "AnonymousRandomSeedGenerator": slice(0, 2),
          "AnonymousSeedGenerator": slice(0, 2)}
_UNORDERED = b"\x08\x00"  # how serialized tf.data.Options begin where deterministic is False


def eager_op_traits(op_type, attrs, inputs):
    """{"deterministic": False, "unseeded": True}, as far as they hold of an eager op."""
    if "Dataset" not in op_type and op_type not in _SEEDS:
        return {}
    attrs = list(attrs or ())
    named = dict(zip(attrs[::2], attrs[1::2]))
    graphs = [value.graph for value in named.values() if hasattr(value, "graph")]
    seeds = [int(seed.numpy()) for seed in inputs[_SEEDS.get(op_type, slice(0))]]
    unordered = op_type.startswith("OptimizeDataset") and b"make_sloppy" in inputs[1].numpy().tolist()
    return _found(named, graphs, unordered, bool(seeds) and not any(seeds))


def graph_op_traits(op, function):
    """The same of a graph's op. function(name): the graph of a function, or None."""
    if "Dataset" not in op.type:
        return {}
    attrs = op.node_def.attr
    named = {name: attrs[name].b if name == "sloppy" else attrs[name].s
             for name in ("deterministic", "sloppy", "serialized_options") if name in attrs}
    graphs = [function(attr.func.name) for attr in attrs.values() if attr.func.name]
    return _found(named, [graph for graph in graphs if graph is not None])


def _found(named, graphs, unordered=False, unseeded=False):
    found = {}
    if unordered or named.get("sloppy") is True or named.get("deterministic") in ("false", b"false") \
            or (named.get("serialized_options") or b"").startswith(_UNORDERED):
        found["deterministic"] = False
    if unseeded or any(_draws(op) for graph in graphs for op in graph.get_operations()):
        found["unseeded"] = True
    return found


def _draws(op):
    """Does it give something else in each run?"""
    seeds = [op.node_def.attr[name].i for name in ("seed", "seed2") if name in op.node_def.attr]
    return op_traits.definition_kind(op.type) == "random" and bool(seeds) and not any(seeds)
